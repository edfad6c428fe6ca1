#!/usr/bin/env python3
"""Share of held-out word problems that a run solved.

    sinkscope run MODEL --prompts heldout.jsonl --gen-len 24 ... --run-dir RUN
    python3 exact_match.py RUN heldout.jsonl

A solution is right when the number behind its first `####` is the problem's result; exact when it is the held-out
answer to the letter. The standard error is that of a share, sqrt(p (1 - p) / (n - 1)).
"""
import json
import math
import os
import re
import sys


def lines(path):
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except (OSError, ValueError) as error:
        raise SystemExit(f"exact_match.py: {path}: {error}") from None


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    problems = lines(sys.argv[2])
    samples = lines(os.path.join(sys.argv[1], "samples.jsonl"))
    right = exact = 0
    for sample in samples:
        problem = problems[sample["index"]]
        found = re.search(r"#### (\d+)", sample["text"])
        right += found is not None and int(found.group(1)) == problem["result"]
        exact += sample["text"].strip() == problem["answer"]
    count = len(samples)
    if count == 0:
        raise SystemExit(f"exact_match.py: {sys.argv[1]} holds no samples")
    for name, number in (("right result", right), ("exact match", exact)):
        share = number / count
        error = math.sqrt(share * (1 - share) / max(1, count - 1))
        print(f"{name}: {number} of {count}, {100 * share:.1f} % (standard error {100 * error:.1f})")


if __name__ == "__main__":
    main()
