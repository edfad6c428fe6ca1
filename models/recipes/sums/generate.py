#!/usr/bin/env python3
"""Texts for two small models, a masked diffusion one and an autoregressive one: word problems, arithmetic, stories.

    python3 generate.py --out DIR --seed 1

writes, from nothing but the seed and the options,

  DIR/train.jsonl     {"prompt", "answer"} for word problems and lines of arithmetic, {"text"} for stories, mixed
  DIR/heldout.jsonl   {"prompt", "answer", "result"}: word problems

An answer is the solution step by step and the result behind `#### `, as in GSM8K. No problem is in train.jsonl twice. A
problem of heldout.jsonl shares its sentences with training problems, but never the first person's name together with
its numbers: one in twenty of these combinations is kept for held-out sets, of whatever seed (problems.is_heldout).

The defaults are for models of some five million parameters that two processor cores train within hours and that shall
solve most held-out problems. They give about 27 million tokens of a small vocabulary: 46 a problem, answer included, 120
a story. Numbers go up to 100, so that every pair of them is met again and again in 300,000 problems and 100,000 lines of
arithmetic; half the problems keep to 20, are learnt early and carry the harder ones. Products are of one digit each. Four
problems of ten take two steps: each step is one more that can go wrong. One in seven has a sentence beside the point, or a
model would use every number it sees. The stories, half of all tokens, are there for ordinary language: without them no
sentence would be about anything but buying, losing and counting.

Easier: --largest 20 --two-steps 0 --distractors 0. Harder: --small 0 --two-steps 0.8.
"""
import argparse
import json
import os
import sys

sys.dont_write_bytecode = True  # beside this file nothing is written

from grammar import Chance  # noqa: E402
from problems import arithmetic, word_problem  # noqa: E402
from stories import story  # noqa: E402

ORDER, PROBLEMS, ARITHMETIC, STORIES, HELDOUT = range(5)  # streams of chance
MOST_FAILURES = 1000  # draws in a row that give nothing new


def new_problems(chance, options, heldout):
    """Problems without end, none twice."""
    seen, failures = set(), 0
    while failures < MOST_FAILURES:
        problem = word_problem(chance, options, heldout)
        if problem["prompt"] in seen:
            failures += 1
            continue
        failures = 0
        seen.add(problem["prompt"])
        yield problem
    raise SystemExit(f"generate.py: after {len(seen)} problems there are hardly any new ones; fewer --"
                     f"{'heldout' if heldout else 'problems'} or a larger --largest would be right")


def without_result(problem):
    return {"prompt": problem["prompt"], "answer": problem["answer"]}


def training_lines(options):
    """All lines of the training set, kinds mixed evenly."""
    chances = {stream: Chance(options.seed, stream) for stream in (ORDER, PROBLEMS, ARITHMETIC, STORIES)}
    problems = new_problems(chances[PROBLEMS], options, heldout=False)
    left = {PROBLEMS: options.problems, ARITHMETIC: options.arithmetic, STORIES: options.stories}
    draw = {PROBLEMS: lambda: without_result(next(problems)),
            ARITHMETIC: lambda: arithmetic(chances[ARITHMETIC], options),
            STORIES: lambda: {"text": story(chances[STORIES])}}
    while (total := sum(left.values())) > 0:
        ticket = chances[ORDER].below(total)
        for kind in left:
            if ticket < left[kind]:
                break
            ticket -= left[kind]
        left[kind] -= 1
        yield draw[kind]()


def heldout_lines(options):
    problems = new_problems(Chance(options.seed, HELDOUT), options, heldout=True)
    for _ in range(options.heldout):
        yield next(problems)


def write_lines(path, lines):
    """The file appears whole or not at all."""
    temporary = path + ".tmp"
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", required=True, help="folder for train.jsonl and heldout.jsonl")
    parser.add_argument("--seed", type=int, default=1, help="of everything")
    parser.add_argument("--problems", type=int, default=300000, help="word problems to train on")
    parser.add_argument("--arithmetic", type=int, default=100000, help="lines of arithmetic")
    parser.add_argument("--stories", type=int, default=100000, help="stories")
    parser.add_argument("--heldout", type=int, default=1000, help="word problems to test on")
    parser.add_argument("--largest", type=int, default=100, help="largest number of a problem, results included")
    parser.add_argument("--largest-factor", type=int, default=9, help="largest number of a product")
    parser.add_argument("--small", type=float, default=0.5, help="share of problems with numbers up to 20, factors to 5")
    parser.add_argument("--two-steps", type=float, default=0.4, help="share of problems with two equations")
    parser.add_argument("--distractors", type=float, default=0.15, help="share with a sentence beside the point")
    options = parser.parse_args()
    for name in ("seed", "problems", "arithmetic", "stories", "heldout"):
        if getattr(options, name) < 0:
            parser.error(f"--{name} is {getattr(options, name)}; it must be at least 0")
    if options.largest < 10:
        parser.error(f"--largest is {options.largest}; it must be at least 10")
    if not 2 <= options.largest_factor <= options.largest:
        parser.error(f"--largest-factor is {options.largest_factor}; it must be from 2 to --largest")
    for name in ("small", "two_steps", "distractors"):
        if not 0 <= getattr(options, name) <= 1:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}; it must be from 0 to 1")
    return options


def main():
    options = arguments()
    paths = [os.path.join(options.out, name) for name in ("train.jsonl", "heldout.jsonl")]
    for path in paths:
        if os.path.lexists(path):
            raise SystemExit(f"generate.py: {path} exists already; give a folder without it")
    try:
        os.makedirs(options.out, exist_ok=True)
    except OSError as error:
        raise SystemExit(f"generate.py: {options.out} cannot be made: {error.strerror}") from None
    write_lines(paths[0], training_lines(options))
    write_lines(paths[1], heldout_lines(options))


if __name__ == "__main__":
    main()
