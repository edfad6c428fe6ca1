"""Seconds, GFLOP/s and peak memory of one LLaDA-8B layer in eager PyTorch that hands out its attention maps.

    /usr/bin/python3 bench/eager_layer.py --positions 512,1024 --dtype bf16

The layer computes attention as the study of these sinks did: scores of all queries and keys, their softmax as a
tensor [heads, S, S], its product with the values. `sinkscope bench` counts the same FLOPs and sums the columns
without ever having the maps. Needs PyTorch (Debian: apt-get install python3-torch libopenblas0); weights are random.
"""
import argparse
import json
import math
import resource
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("eager_layer.py: this Python has no PyTorch; on Debian `apt-get install python3-torch libopenblas0` gives it "
             "to /usr/bin/python3")

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
ROPE_THETA = 500000.0


class Layer:
    """The weights of one block, all [out, in]; x is [S, width]."""

    def __init__(self, width, heads, mlp, dtype):
        def matrix(rows, columns):
            return torch.empty(rows, columns, dtype=dtype).normal_(0, 0.02)

        self.heads = heads
        self.q, self.k, self.v, self.out = (matrix(width, width) for _ in range(4))
        self.gate, self.up, self.down = matrix(mlp, width), matrix(mlp, width), matrix(width, mlp)
        self.attention_norm = self.mlp_norm = torch.ones(width, dtype=dtype)

    def __call__(self, x):
        """-> x after the block, and the maps [heads, S, S]."""
        attended, maps = self.attention(rms_norm(x, self.attention_norm))
        x = x + attended
        h = rms_norm(x, self.mlp_norm)
        return x + (torch.nn.functional.silu(h @ self.gate.T) * (h @ self.up.T)) @ self.down.T, maps

    def attention(self, h):
        def split(y):
            return y.view(len(h), self.heads, -1).transpose(0, 1)  # [heads, S, head width]

        q, k, v = rope(split(h @ self.q.T)), rope(split(h @ self.k.T)), split(h @ self.v.T)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        maps = torch.softmax(scores, dim=-1, dtype=torch.float32).to(h.dtype)
        return (maps @ v).transpose(0, 1).reshape(h.shape) @ self.out.T, maps


def rms_norm(x, weight):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


def rope(t):
    half = t.shape[-1] // 2
    frequency = ROPE_THETA ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = torch.arange(t.shape[1], dtype=torch.float32)[:, None] * frequency
    sin, cos = angle.sin(), angle.cos()
    a, b = t.float().split(half, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(t.dtype)


def layer_flops(positions, width, mlp):
    """2 per multiply-add: projections, scores and product with the values, MLP; as in src/model/flops.h."""
    return 8 * positions * width * width + 4 * positions * positions * width + 6 * positions * width * mlp


def measure(layer, positions, width, mlp, dtype, repeat):
    x = torch.randn(positions, width).to(dtype)
    seconds = []
    for turn in range(repeat + 1):  # the first one warms up
        start = time.perf_counter()
        _, maps = layer(x)
        if turn > 0:
            seconds.append(time.perf_counter() - start)
        del maps
    return statistics.median(seconds)


def warn_of_reference_blas():
    """Debian's PyTorch multiplies by whatever BLAS is installed; the reference one is 50 times slower than others."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        if "/blas/libblas.so" in maps.read():
            print("eager_layer.py: PyTorch uses the reference BLAS here, which says little about PyTorch; "
                  "apt-get install libopenblas0 gives it a fast one", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", default="512", help="lengths S[,S...], ascending: peak memory only grows [512]")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--threads", type=int, default=0, help="[PyTorch's choice]")
    parser.add_argument("--repeat", type=int, default=5, help="turns after one that warms up; the median counts [5]")
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--mlp", type=int, default=12288)
    parser.add_argument("--json", action="store_true", help="one object a length")
    options = parser.parse_args()
    if not all(part.isdecimal() and int(part) > 0 for part in options.positions.split(",")):
        parser.error("--positions takes lengths from 1, like 512,1024")
    if min(options.repeat, options.heads, options.mlp, options.width // 2) < 1 or options.width % (2 * options.heads):
        parser.error("--repeat, --heads and --mlp begin at 1, and --width is a multiple of 2 * --heads")
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    warn_of_reference_blas()
    torch.manual_seed(0)
    dtype = DTYPES[options.dtype]
    with torch.inference_mode():
        layer = Layer(options.width, options.heads, options.mlp, dtype)
        for positions in map(int, options.positions.split(",")):
            seconds = measure(layer, positions, options.width, options.mlp, dtype, options.repeat)
            flops = layer_flops(positions, options.width, options.mlp)
            result = {
                "torch": torch.__version__,
                "dtype": options.dtype,
                "positions": positions,
                "threads": torch.get_num_threads(),
                "seconds": seconds,
                "flops": flops,
                "gflops": flops * 1e-9 / seconds,
                "peak_resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 * 1e-6,
            }
            if options.json:
                print(json.dumps(result), flush=True)
            else:
                print("S = {positions}, {dtype}, {threads} threads: {seconds:.4f} s a layer, {gflops:.1f} GFLOP/s, "
                      "peak resident {peak_resident_mb:.0f} MB".format(**result), flush=True)


if __name__ == "__main__":
    main()
