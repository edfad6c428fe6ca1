"""docs/compare.md again, in NumPy and plain loops: compare_reference.py RUN_A RUN_B prints JSON.

For runs of diffusion models with the same number of steps.
"""

import json
import sys

import numpy as np


def samples(run):
    with open(f"{run}/samples.jsonl") as lines:
        for index in sorted(json.loads(line)["index"] for line in lines):
            yield np.load(f"{run}/sample_{index:05d}.npz")


def tau(x, y):
    pairs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i in range(len(x)) for j in range(i)]
    a, b = np.array(pairs, dtype=float).T
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


def opened(z, mask):
    generated = z["states"][:, int(z["prompt_length"]):] != mask
    return np.where(generated.any(axis=0), generated.argmax(axis=0), len(generated))


def changes(a, b, steps):
    difference = (b["confidence"].astype(float) - a["confidence"])[steps]
    return difference[np.isfinite(difference)]


def summary(differences):
    d = np.concatenate(differences)
    return {"candidates": len(d), "mean_change": d.mean(), "mean_absolute": abs(d).mean(), "largest": abs(d).max()}


run_a, run_b = sys.argv[1:]
mask = json.load(open(f"{run_a}/run.json"))["model"]["mask_id"]
result = {"parts_at": [], "kendall_tau": [], "share_equal": []}
before, everywhere, masked = [], [], []
for a, b in zip(samples(run_a), samples(run_b)):
    differ = (a["states"] != b["states"]).any(axis=1)
    parts = int(differ.argmax()) if differ.any() else None
    steps = np.arange(len(differ) - 1)
    result["parts_at"].append(parts)
    result["kendall_tau"].append(tau(opened(a, mask), opened(b, mask)))
    output = (a["states"] == b["states"])[-1, int(a["prompt_length"]):]
    result["share_equal"].append(output.mean())
    together = steps if parts is None else steps[:parts]
    before.append(changes(a, b, together))
    everywhere.append(changes(a, b, steps))
    if "masked_keys" in b:
        masking = [t for t in together if b["masked_keys"][t].any()]
        masked.append(changes(a, b, masking))
result["before_parting"], result["all_steps"] = summary(before), summary(everywhere)
result["keys_masked"] = summary(masked) if masked else None
print(json.dumps(result))
