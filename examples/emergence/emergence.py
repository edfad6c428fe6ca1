#!/usr/bin/env python3
"""Sinks and massive activations as they are born: four kinds of attention, autoregressive and diffusion, step by step.

    examples/emergence/emergence.py --out DIR [--steps 3000] [--threads N] [--only NAME]

Trains eight small models (4 layers of width 128, 1.1 M parameters) on texts that models/recipes/sums/generate.py writes,
each probed every 100 steps, and leaves in DIR

  emergence.csv    objective, attention, step, curve, value: all that the runs' metrics.jsonl hold
  emergence.png    the figure of docs/emergence.md (gnuplot)
  runs/            the runs themselves; what is there already is not trained again, and an interrupted one goes on

--only KIND (softmax, sigmoid, key-bias, sink-token) and --objective train and draw that alone. All of it takes one
core some 45 minutes.
"""
import argparse
import csv
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
KINDS = {
    "softmax": {},
    "sigmoid": {"similarity": "sigmoid", "normalised": False},
    "key-bias": {"slot": "key-bias"},
    "sink-token": {"slot": "sink-token"},
}
OBJECTIVES = ["autoregressive", "masked-diffusion"]
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]  # Okabe and Ito
# Panels of the figure: title, curve by objective, range
PANELS = [
    ("share of heads with a first-token sink", "autoregressive", ["sink_rate"]),
    ("share of heads with a sink (column sum > mean + 3)", "masked-diffusion", ["sink_rate"]),
    ("mean attention to the slot", "autoregressive", ["alpha_slot"]),
    ("mean attention to the slot", "masked-diffusion", ["alpha_slot"]),
    ("massive activations: largest layer's norm ratio", "autoregressive", ["massive"]),
    ("massive activations: largest layer's norm ratio", "masked-diffusion", ["massive"]),
    ("loss, nats a predicted token", "autoregressive", ["token_loss"]),
    ("loss, nats a predicted token", "masked-diffusion", ["token_loss"]),
]


def config_of(objective, kind, steps):
    return {
        "objective": objective,
        "model": {"layers": 4, "heads": 4, "width": 128, "mlp_width": 384, "attention": KINDS[kind]},
        "tokenizer": "tokenizer", "data": {"files": ["data/train.jsonl"]}, "context": 128, "batch": 16, "steps": steps,
        "optimizer": {"learning_rate": 2e-3, "warmup": 100, "weight_decay": 0.1}, "precision": "bf16",
        "log_every": 25, "checkpoint_every": 500, "probe": {"every": 100}}


def make_texts(program, out):
    """The texts and their tokenizer, once."""
    if not os.path.exists(f"{out}/data"):
        subprocess.run([sys.executable, f"{ROOT}/models/recipes/sums/generate.py", "--out", f"{out}/data.part",
                        "--problems", "40000", "--arithmetic", "10000", "--stories", "20000", "--heldout", "10",
                        "--largest", "50", "--seed", "2"], check=True)
        os.rename(f"{out}/data.part", f"{out}/data")
    if not os.path.exists(f"{out}/tokenizer"):
        subprocess.run([program, "train-tokenizer", f"{out}/data/train.jsonl", "--vocab-size", "1024", "--pattern", "gpt2",
                        "--out", f"{out}/tokenizer"], check=True)


def train(program, out, objective, kind, options):
    name = f"{objective}-{kind}"
    config = f"{out}/{name}.json"
    with open(config, "w", encoding="utf-8") as file:
        json.dump(config_of(objective, kind, options.steps), file, indent=1)
    command = [program, "train", config, "--out", f"{out}/runs/{name}", "--resume"]
    if options.threads:
        command += ["--threads", str(options.threads)]
    if options.quiet:
        command.append("--quiet")
    print(f"== {name}", flush=True)
    subprocess.run(command, check=True)


def curves_of(path):
    """(step, curve, value) of a metrics.jsonl."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in map(json.loads, file):
            numbers = line.get("probe", line)
            for name, value in numbers.items():
                if name == "massive_ratio":
                    rows.append((line["step"], "massive", max(value)))
                elif isinstance(value, (int, float)) and name != "step":
                    rows.append((line["step"], name, value))
    return rows


def draw(out, table):
    """table: (objective, kind) -> rows of curves_of()"""
    script = [f"set terminal pngcairo size 1200,1400 font 'Sans,10'\nset output '{out}/emergence.png'",
              "set multiplot layout 4,2\nset xlabel 'step'\nset grid lc rgb '#dddddd'\nset key outside bottom center horizontal"]
    for number, (title, objective, names) in enumerate(PANELS):
        plots = []
        for colour, kind in zip(COLOURS, KINDS):
            points = [(step, value) for step, name, value in table.get((objective, kind), []) if name in names]
            if not points:
                continue
            block = f"$p{number}_{len(plots)}"
            script.append(f"{block} << END\n" + "\n".join(f"{s} {v:.6g}" for s, v in points) + "\nEND")
            plots.append(f"{block} with lines lw 2 lc rgb '{colour}' title '{kind}'")
        scale = "set logscale y; set yrange [*:*]" if names == ["token_loss"] else "unset logscale y; set yrange [0:*]"
        if plots:
            heading = f"{objective}: {title}".replace("'", "''")
            script.append(f"set title '{heading}' noenhanced\n{scale}\nplot " + ", ".join(plots))
        else:
            script.append("set multiplot next")
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", required=True, help="folder for everything")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--threads", type=int, help="CPU threads of the training")
    parser.add_argument("--only", choices=list(KINDS), help="one kind of attention")
    parser.add_argument("--objective", choices=OBJECTIVES, help="one objective")
    parser.add_argument("--quiet", action="store_true", help="no progress of the training")
    options = parser.parse_args()
    program = os.environ.get("SINKSCOPE", f"{ROOT}/build/release/sinkscope")
    if not os.path.exists(program):
        raise SystemExit(f"emergence.py: {program} is missing; ./demo builds it, SINKSCOPE may name another")
    out = os.path.abspath(options.out)
    os.makedirs(f"{out}/runs", exist_ok=True)
    make_texts(program, out)
    table = {}
    for kind in [options.only] if options.only else KINDS:
        for objective in [options.objective] if options.objective else OBJECTIVES:
            train(program, out, objective, kind, options)
            table[objective, kind] = curves_of(f"{out}/runs/{objective}-{kind}/metrics.jsonl")
    with open(f"{out}/emergence.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["objective", "attention", "step", "curve", "value"])
        for (objective, kind), rows in table.items():
            writer.writerows((objective, kind, step, name, f"{value:.6g}") for step, name, value in rows)
    draw(out, table)
    print(f"{out}/emergence.csv\n{out}/emergence.png")


if __name__ == "__main__":
    main()
