#!/usr/bin/env python3
"""The tables of docs/study.md from what examples/study/study left.

    examples/study/tables.py OUT            Markdown on standard output
    examples/study/tables.py OUT --csv DIR  also study_table1.csv, _where, _effect, _tokens, _figure5, _figure7, _figure10
"""
import csv
import json
import os
import sys

import numpy as np

METRIC, FILTER = "exact_match", "result"


def load(*parts):
    path = os.path.join(*parts)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def percent(value, digits=1):
    return "-" if value is None else f"{100 * value:.{digits}f}"


def rows_of(out, folder):
    """Rows of one evaluation by (rank, K, control); nothing masked is (None, 0, 'none')."""
    summary = load(out, folder, "eval.json")
    if summary is None or "table" not in summary:
        return {}
    return {(row["rank"], row["top_k"], row["control"]): dict(row, folder=os.path.join(out, folder))
            for row in summary["table"] if row["metric"] == METRIC and row["filter"] == FILTER}


def masked_keys(row, samples=50):
    """Mean number of keys masked in a layer, head and step (of rank own: and query), from step 1 on."""
    counts = []
    folder = os.path.join(row["folder"], row["cell"], "sums")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".npz") or len(counts) == samples:
            continue
        with np.load(os.path.join(folder, name)) as arrays:
            if "masked_keys" in arrays:
                counts.append(arrays["masked_keys"][1:].sum(-1).mean())
            elif "queries_without_key" in arrays:
                lost = arrays["queries_without_key"][1:]
                counts.append(lost.sum(-1).mean() / lost.shape[-1])
            else:
                token = [arrays[key].sum(-1).mean() for key in arrays.files if key.startswith("masked_keys_")]
                if token:
                    counts.append(np.mean(token))
    return float(np.mean(counts)) if counts else None


def difference(compared):
    if not compared:
        return ""
    low, high = compared["interval"]
    p = compared["p"]
    sure = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"{100 * compared['difference']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}], {sure}"


def table1(out):
    lines = ["| model | rank | K | keys masked | sinks masked | random keys masked | sinks - random [95 %] |", "|---|---|---|---|---|---|---|"]
    table = []
    for model in ("sums-llada", "sums-llama"):
        rows = rows_of(out, f"grid-{model}")
        if not rows:
            continue
        plain = rows[(None, 0, "none")]
        lines.append(f"| {model} | | 0 | | {percent(plain['value'])} ± {percent(plain['stderr'])} | | |")
        table.append([model, "", 0, "none", 0, plain["samples"], plain["value"], plain["stderr"], "", "", "", ""])
        for (rank, k, control), row in rows.items():
            if k == 0:
                continue
            keys = masked_keys(row)
            against = row["against_plain"]
            table.append([model, rank, k, control, keys, row["samples"], row["value"], row["stderr"], against["difference"],
                          *against["interval"], against["p"]])
            if control != "none":
                continue
            other = rows[(rank, k, "random")]
            compared = next(entry for entry in row["against_controls"] if entry["control"] == "random")
            lines.append(f"| {model} | {rank} | {k} | {keys:.1f} | {percent(row['value'])} ± {percent(row['stderr'])} | "
                         f"{percent(other['value'])} ± {percent(other['stderr'])} | {difference(compared)} |")
    header = ["model", "rank", "top_k", "control", "keys_masked", "samples", "value", "stderr", "minus_plain", "low", "high", "p"]
    return lines, [header, *table]


def where(out):
    lines = ["| | nothing | largest sink | random key | sink - random [95 %] |", "|---|---|---|---|---|"]
    table = [["model", "masked_in", "control", "samples", "value", "stderr"]]
    names = [f"layer-{layer}" for layer in range(6)] + ["class-prompt", "class-decoded", "class-masked", "value-zero"]
    for model in ("sums-llada", "sums-llama"):
        for name in names:
            rows = rows_of(out, f"{name}-{model}")
            if not rows:
                continue
            rank = next(rank for rank, k, _ in rows if k == 1)
            plain, sinks, random = rows[(None, 0, "none")], rows[(rank, 1, "none")], rows[(rank, 1, "random")]
            for control, row in (("plain", plain), ("none", sinks), ("random", random)):
                table.append([model, name, control, row["samples"], row["value"], row["stderr"]])
            cells = " | ".join(f"{percent(row['value'])} ± {percent(row['stderr'])}" for row in (plain, sinks, random))
            lines.append(f"| {model}, {name} | {cells} | {difference(sinks['against_controls'][0])} |")
    return lines, table


def effect(out):
    lines = ["| masked | KL, nats | top-1 the same | probability of the plain choice | by quarter of attention lost, least to most | τ of mass and change |",
             "|---|---|---|---|---|---|"]
    table = [["top_k", "control", "steps", "predictions", "mean_kl", "agreement", "mean_confidence_change", "mean_probability_change",
              "mean_removed_mass", "quarter_1", "quarter_2", "quarter_3", "quarter_4", "kendall"]]
    measured = load(out, "measured-effect", "measure.json")
    runs = (measured or {}).get("runs", [])
    for run in sorted(runs, key=lambda run: (run["intervention"]["top_k"], run["intervention"]["control"])):
        of = run.get("effect")
        if not of:
            continue
        sink = run["intervention"]
        quarters = [quarter["mean_probability_change"] for quarter in of["quarters"]]
        tau = of["mass_and_probability"]["kendall"]
        table.append([sink["top_k"], sink["control"], of["steps"], of["predictions"], of["mean_kl"], of["agreement"],
                      of["mean_confidence_change"], of["mean_probability_change"], of["mean_removed_mass"], *quarters, tau])
        name = f"{sink['top_k']}, {'sinks' if sink['control'] == 'none' else sink['control']}"
        lines.append(f"| {name} | {of['mean_kl']:.3f} | {percent(of['agreement'])} % | {of['mean_probability_change']:+.3f} | "
                     + ", ".join(f"{value:+.3f}" for value in quarters) + f" | {tau:+.2f} |")
    return lines, table


def tokens(out, count=8):
    measured = load(out, "measured-sums-llada", "measure.json")
    lines = ["| token | frequency among sinks | share of positions | lift |", "|---|---|---|---|"]
    table = [["token", "id", "frequency", "share", "lift"]]
    for entry in (measured or {"pooled": {"tokens": []}})["pooled"]["tokens"]:
        table.append([entry["text"], entry["id"], entry["frequency"], entry["share"], entry["lift"]])
    for text, _, frequency, share, lift in table[1:count + 1]:
        lines.append(f"| `{text}` | {frequency:.3f} | {share:.3f} | {lift:.2f} |")
    return lines, table


def figures(out):
    """Numbers behind Figures 5 (largest sink by layer and head), 10 (share against epsilon) and 7 (its position)."""
    pooled = load(out, "measured-sums-llada", "measure.json")["pooled"]
    five = [["layer", "head", "largest_column"]]
    for layer, heads in enumerate(pooled["largest_column"]):
        five += [[layer, head, value] for head, value in enumerate(heads)]
    ten = [["epsilon", "share_of_sinks"]] + [[entry["epsilon"], entry["share"]] for entry in pooled["share_by_epsilon"]]
    top = max(five[1:], key=lambda row: row[2])
    seven = [["sample", "step", "layer", "head", "position", "column_sum", "is_sink"]]
    folder = os.path.join(out, "plain-sums-llada")
    for sample in range(5):
        with np.load(os.path.join(folder, f"sample_{sample:05d}.npz")) as arrays:
            columns = arrays["column_sum"].astype(np.float32).sum(1)[:, top[0], top[1]]
        positions = columns.shape[-1]
        for step, row in enumerate(columns):
            threshold = 1 + 3 * (positions - 1) / positions
            seven.append([sample, step, top[0], top[1], int(row.argmax()), float(row.max()), int(row.max() > threshold)])
    return five, seven, ten


def main():
    if len(sys.argv) not in (2, 4):
        raise SystemExit(__doc__)
    out = sys.argv[1]
    one, one_csv = table1(out)
    places, places_csv = where(out)
    two, two_csv = tokens(out)
    states, states_csv = effect(out)
    for title, lines in (("Table 1", one), ("Where", places), ("Same state", states), ("Table 2", two)):
        print(f"## {title}\n\n" + "\n".join(lines) + "\n")
    five, seven, ten = figures(out)
    if len(sys.argv) == 4:
        os.makedirs(sys.argv[3], exist_ok=True)
        for name, table in (("table1", one_csv), ("where", places_csv), ("effect", states_csv), ("tokens", two_csv),
                            ("figure5", five), ("figure7", seven), ("figure10", ten)):
            with open(os.path.join(sys.argv[3], f"study_{name}.csv"), "w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    main()
