"""Seconds of one transformer block's forward and backward pass in eager PyTorch, on the shapes of training_bench.cc.

    /usr/bin/python3 bench/eager_block.py --threads 2

A block is what a plain training loop writes: RMS norm, rotary positions, attention with its scores as a tensor
[B, H, T, T], SwiGLU, residuals. `bench_ops --benchmark_filter=^block/` times the same block in our kernels. Needs
PyTorch (Debian: apt-get install python3-torch libopenblas0); weights are random.
"""
import argparse
import json
import math
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("eager_block.py: this Python has no PyTorch; on Debian `apt-get install python3-torch libopenblas0` gives it "
             "to /usr/bin/python3")

# width, heads, MLP, batch, positions
SHAPES = [(256, 4, 768, 32, 256), (768, 8, 1536, 8, 512)]
ROPE_THETA = 10000.0


class RmsNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Block(torch.nn.Module):
    def __init__(self, width, heads, mlp, positions, causal):
        super().__init__()

        def linear(inputs, outputs):
            return torch.nn.Linear(inputs, outputs, bias=False)

        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.out = (linear(width, width) for _ in range(4))
        self.gate, self.up, self.down = linear(width, mlp), linear(width, mlp), linear(mlp, width)
        self.attention_norm, self.mlp_norm = RmsNorm(width), RmsNorm(width)
        half = width // heads // 2
        angle = torch.arange(positions)[:, None] * ROPE_THETA ** (-torch.arange(half) / half)
        self.cos, self.sin = angle.cos(), angle.sin()  # [T, half]
        self.mask = torch.full((positions, positions), -math.inf).triu(1)

    def rope(self, x):  # [B, H, T, D]
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * self.cos - b * self.sin, b * self.cos + a * self.sin], dim=-1)

    def attention(self, x):  # [B, T, W]
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        scores = self.rope(q) @ self.rope(k).transpose(2, 3) / math.sqrt(q.shape[-1])
        if self.causal:
            scores = scores + self.mask
        return self.out((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        h = self.mlp_norm(x)
        return x + self.down(torch.nn.functional.silu(self.gate(h)) * self.up(h))


def block_flops(width, mlp, batch, positions):
    """As in training_bench.cc: the backward pass counts as twice the forward one."""
    return 6 * batch * positions * (4 * width * width + 3 * width * mlp + 2 * positions * width)


def measure(block, x, bfloat16, repeat):
    """Wall and processor seconds, medians."""
    wall, processor = [], []
    gradient = torch.randn_like(x)
    for turn in range(repeat + 1):  # the first one warms up
        start, start_processor = time.perf_counter(), time.process_time()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            y = block(x)
        y.backward(gradient)
        if turn > 0:
            wall.append(time.perf_counter() - start)
            processor.append(time.process_time() - start_processor)
        block.zero_grad(set_to_none=True)
        x.grad = None
    return statistics.median(wall), statistics.median(processor)


def warn_of_reference_blas():
    """Debian's PyTorch multiplies by whatever BLAS is installed; the reference one is 50 times slower than others."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        if "/blas/libblas.so" in maps.read():
            print("eager_block.py: PyTorch uses the reference BLAS here, which says little about PyTorch; "
                  "apt-get install libopenblas0 gives it a fast one", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=0, help="[PyTorch's choice]")
    parser.add_argument("--repeat", type=int, default=5, help="turns after one that warms up; the median counts [5]")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--bfloat16", action="store_true", help="torch.autocast to bfloat16")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat begins at 1")
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    warn_of_reference_blas()
    torch.manual_seed(0)
    for width, heads, mlp, batch, positions in SHAPES:
        block = Block(width, heads, mlp, positions, options.causal)
        x = torch.randn(batch, positions, width, requires_grad=True)
        wall, processor = measure(block, x, options.bfloat16, options.repeat)
        print(json.dumps({
            "torch": torch.__version__, "width": width, "heads": heads, "mlp": mlp, "batch": batch,
            "positions": positions, "causal": options.causal, "bfloat16": options.bfloat16,
            "threads": torch.get_num_threads(), "seconds": wall, "processor_seconds": processor,
            "gflops": block_flops(width, mlp, batch, positions) * 1e-9 / wall,
        }), flush=True)


if __name__ == "__main__":
    main()
