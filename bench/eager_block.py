"""Seconds of one transformer block's forward and backward pass, or of a whole training step, in eager PyTorch.

    /usr/bin/python3 bench/eager_block.py --threads 2 [--model]

A block is what a plain training loop writes: RMS norm, rotary positions, attention with its scores as a tensor
[B, H, T, T], SwiGLU, residuals. A step is that of masked diffusion: half of the positions are predicted. `bench_ops
--benchmark_filter='^block/|training_step'` times the same in our kernels. Needs PyTorch (Debian: apt-get install python3-torch libopenblas0); weights are random.
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
SHAPES = [(256, 4, 768, 32, 256), (768, 8, 1536, 8, 512)]  # of training_bench.cc
# and then layers, vocabulary
MODELS = [((256, 4, 768, 16, 256), 6, 8192), ((512, 8, 1536, 8, 512), 8, 16384)]  # of training_step_bench.cc
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


class Model(torch.nn.Module):
    def __init__(self, shape, layers, vocabulary, causal):
        super().__init__()
        width, heads, mlp, _, positions = shape
        self.table = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.Sequential(*(Block(width, heads, mlp, positions, causal) for _ in range(layers)))
        self.norm = RmsNorm(width)

    def loss(self, ids, masked):
        hidden = self.norm(self.blocks(self.table(ids)))[masked]
        return torch.nn.functional.cross_entropy(hidden @ self.table.weight.T, ids[masked])


def block_flops(width, mlp, batch, positions):
    """As in training_block.h: the backward pass counts as twice the forward one."""
    return 6 * batch * positions * (4 * width * width + 3 * width * mlp + 2 * positions * width)


def measure(turn, repeat):
    """Wall and processor seconds of turn(), medians."""
    wall, processor = [], []
    for i in range(repeat + 1):  # the first one warms up
        start, start_processor = time.perf_counter(), time.process_time()
        turn()
        if i > 0:
            wall.append(time.perf_counter() - start)
            processor.append(time.process_time() - start_processor)
    return statistics.median(wall), statistics.median(processor)


def block_turn(shape, causal, autocast):
    width, heads, mlp, batch, positions = shape
    block = Block(width, heads, mlp, positions, causal)
    x = torch.randn(batch, positions, width, requires_grad=True)
    gradient = torch.randn_like(x)

    def turn():
        with autocast():
            y = block(x)
        y.backward(gradient)
        block.zero_grad(set_to_none=True)
        x.grad = None

    return turn


def step_turn(shape, layers, vocabulary, causal, autocast):
    model = Model(shape, layers, vocabulary, causal)
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    ids = torch.randint(vocabulary, (shape[3], shape[4]))
    masked = torch.zeros_like(ids, dtype=torch.bool)
    masked[:, ::2] = True

    def turn():
        with autocast():
            loss = model.loss(ids, masked)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return turn


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
    parser.add_argument("--model", action="store_true", help="a whole training step")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--bfloat16", action="store_true", help="torch.autocast to bfloat16")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat begins at 1")
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    warn_of_reference_blas()
    torch.manual_seed(0)

    def autocast():
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bfloat16)

    for shape, layers, vocabulary in MODELS if options.model else ((shape, 1, 0) for shape in SHAPES):
        width, heads, mlp, batch, positions = shape
        turn = (step_turn(shape, layers, vocabulary, options.causal, autocast) if options.model
                else block_turn(shape, options.causal, autocast))
        wall, processor = measure(turn, options.repeat)
        flops = layers * block_flops(width, mlp, batch, positions) + 3 * batch * positions * vocabulary * width
        print(json.dumps({
            "torch": torch.__version__, "width": width, "heads": heads, "mlp": mlp, "batch": batch,
            "positions": positions, "layers": layers, "vocabulary": vocabulary, "causal": options.causal,
            "bfloat16": options.bfloat16, "threads": torch.get_num_threads(), "seconds": wall,
            "processor_seconds": processor, "gflops": flops * 1e-9 / wall,
        }), flush=True)


if __name__ == "__main__":
    main()
