"""How far a dtype is from float32 on the states of a float32 run.

python3 dtype_agreement.py PROGRAM MODEL RUN [DTYPE], RUN made with --dtype f32; DTYPE is bf16, or f32+int8 or bf16+int8 for 8-bit weights.
Takes every 16th step of every sample and compares the logits of masked positions; of an autoregressive model the logits of
every generated token.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

program, model, run = sys.argv[1:4]
dtype = sys.argv[4] if len(sys.argv) > 4 else "bf16"


def options_of(kind):
    name, _, weights = kind.partition("+")
    return ["--dtype", name, "--weights", weights or "native"]


def logits(rows, kind):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "f.npz"
        ids = ";".join(",".join(map(str, row)) for row in rows)
        subprocess.run([program, "forward", model, "--ids", ids, "--out", out, "--quiet", *options_of(kind)], check=True)
        return np.load(out)["logits"].astype(np.float64)


agree = total = 0
worst = kl = 0.0
for path in sorted(pathlib.Path(run).glob("sample_*.npz")):
    sample = np.load(path)
    if sample["mask_id"] >= 0:
        rows = sample["states"][:-1:16]
        wanted = rows == sample["mask_id"]
    else:
        row = sample["states"][-1]
        rows = row[row >= 0][None, :-1]
        wanted = np.arange(rows.shape[1])[None] >= sample["prompt_length"] - 1
    truth, other = logits(rows, "f32")[wanted], logits(rows, dtype)[wanted]
    log_p = truth - np.logaddexp.reduce(truth, axis=1, keepdims=True)
    log_q = other - np.logaddexp.reduce(other, axis=1, keepdims=True)
    agree += (truth.argmax(1) == other.argmax(1)).sum()
    total += len(truth)
    worst = max(worst, np.abs(truth - other).max())
    kl += (np.exp(log_p) * (log_p - log_q)).sum()
print(f"{total} positions: top-1 agreement {agree / total:.2%}, largest logit difference {worst:.3f}, mean KL(f32 || {dtype}) {kl / total:.2e} nats")
