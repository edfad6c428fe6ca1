"""The measurements of docs/methods.md again, in NumPy and as plainly as can be: reference.py RUN... prints the fields
of measure.json's `pooled` that it computes. Rule paper, sum scale."""
import json
import sys

import numpy as np

EPSILON = 3.0


def samples_of(run):
    mask_id = json.load(open(run + "/run.json"))["model"]["mask_id"]
    for line in open(run + "/samples.jsonl"):
        z = np.load(f"{run}/sample_{json.loads(line)['index']:05d}.npz")
        yield z["column_sum"].astype(np.float32), z["states"][:-1], int(z["prompt_length"]), mask_id


def rule(c):
    """c [..., S] -> which are sinks, and by how much more epsilon could be."""
    c = c.astype(np.float64)
    others = (c.sum(-1, keepdims=True) - c) / (c.shape[-1] - 1)
    return c - (others + EPSILON) > 1e-6 * np.maximum(c, others + EPSILON), c * (1 - 1e-6) - others


def mean_jaccard(a, b):
    """a, b [..., S] of bool -> sum and number over pairs with a non-empty union."""
    union = (a | b).sum(-1)
    return ((a & b).sum(-1)[union > 0] / union[union > 0]).sum(), (union > 0).sum()


def largest(c, sink):
    return np.where(sink.any(-1), np.where(sink, c, -1).argmax(-1), -1)


def lives_of(sink):
    """sink [T, maps*S] -> births, deaths, lives, touching."""
    T = sink.shape[0]
    padded = np.zeros((T + 2, sink.shape[1]), int)
    padded[1:-1] = sink
    change = np.diff(padded, axis=0)
    begins, ends = np.where(change.T == 1)[1], np.where(change.T == -1)[1]
    return (begins > 0).sum(), (ends < T).sum(), len(begins), ((begins == 0) | (ends == T)).sum()


def measure(runs):
    n = {}

    def add(key, value):
        n[key] = n.get(key, 0) + value

    drifts, spatial, temporal, tokens, positions = [], [], [], [], []
    for run in runs:
        for classes, states, prompt_length, mask_id in samples_of(run):
            T, _, L, H, S = classes.shape
            c = classes.sum(axis=1)  # [T,L,H,S]
            sink, margin = rule(c)
            add("cells", sink.size)
            add("sinks", sink.sum())
            add("above", np.array([(margin > e).sum() for e in np.arange(41) / 4]))
            add("layer_sinks", sink.sum(axis=(0, 2, 3)))
            add("maps_of_layer", T * H)
            top = np.where(sink, c, 0).max(-1).astype(np.float64)
            add("top", top.sum(0))
            add("top_steps", sink.any(-1).sum(0))
            for key, value in zip(("births", "deaths", "lives", "touching"), lives_of(sink.reshape(T, -1))):
                add(key, value)
            where = largest(c, sink)
            both = (where[1:] >= 0) & (where[:-1] >= 0) & (where[1:] != where[:-1])
            add("jump_sum", np.abs(where[1:] - where[:-1])[both].sum())
            add("jump_count", both.sum())
            share = sink.mean(0)
            add("ever", (share > 0).sum())
            add("stay", (share >= 0.9 - 1e-12).sum())
            for key, value in zip(("jaccard", "pairs"), mean_jaccard(sink[1:], sink[:-1])):
                add(key, value)
            weight = np.where(sink, c, 0).astype(np.float64).sum(axis=(1, 2))  # [T,S]
            steps = np.flatnonzero(weight.sum(1) > 0)
            centroid = (weight @ np.arange(S))[steps] / weight.sum(1)[steps]
            drifts.append(np.polyfit(steps, centroid, 1)[0])
            temporal.append(centroid.var())
            spatial.append(c.astype(np.float64).sum(axis=(1, 2)).mean(0).var())
            masked = states == mask_id  # [T,S]
            for t in range(T):
                m = masked[t].sum()
                if m == 0 or m == S:
                    continue
                a, b = classes[t, 2], classes[t, 0] + classes[t, 1]
                ka = largest(a, rule(a * np.float32(S / m))[0])
                kb = largest(b, rule(b * np.float32(S / (S - m)))[0])
                add("split_maps", L * H)
                add("split_count", ((ka >= 0) & (kb >= 0) & (ka != kb)).sum())
            count = sink.sum(axis=(1, 2))  # [T,S]
            tokens.append(np.repeat(states.ravel(), count.ravel()))
            positions.append(states.ravel())
            add("masked_sinks", count[masked].sum())
            add("place", (count * (np.arange(S) + 0.5) / S).sum())
            add("sink_mass", np.where(sink, c, 0).astype(np.float64).sum(axis=(0, 2, 3)))
            add("mass", c.astype(np.float64).sum(axis=(0, 2, 3)))
            by_layer = sink.any(2)  # [T,L,S]
            pairs = [mean_jaccard(by_layer[:, 0], by_layer[:, l]) for l in range(L)]
            add("layer_overlap", np.array([p[0] for p in pairs]))
            add("layer_pairs", np.array([p[1] for p in pairs]))
    tokens, positions = np.concatenate(tokens), np.concatenate(positions)
    ids, counts = np.unique(tokens, return_counts=True)
    best = ids[counts.argmax()]
    frequency, token_share = counts.max() / len(tokens), (positions == best).mean()
    return {
        "share_of_sinks": n["sinks"] / n["cells"],
        "share_by_epsilon": n["above"] / n["cells"],
        "sinks_per_layer": n["layer_sinks"] / n["maps_of_layer"],
        "top_sink": n["top"] / n["top_steps"],
        "tracks": {
            "births": n["births"], "deaths": n["deaths"], "lives": n["lives"],
            "lives_touching_an_end": n["touching"], "jump_count": n["jump_count"],
            "mean_jump": n["jump_sum"] / n["jump_count"], "static_share": n["stay"] / n["ever"],
            "jaccard": n["jaccard"] / n["pairs"], "drift": np.mean(drifts),
            "spatial_variance": np.mean(spatial), "temporal_variance": np.mean(temporal)},
        "split_maps": n["split_maps"], "split_count": n["split_count"],
        "token": {"id": best, "frequency": frequency, "share": token_share, "lift": frequency / token_share},
        "masked_sinks": n["masked_sinks"] / n["sinks"],
        "mean_relative_position": n["place"] / n["sinks"],
        "absorption": n["sink_mass"] / n["mass"],
        "layer_overlap": n["layer_overlap"] / n["layer_pairs"],
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1:]), default=lambda value: np.asarray(value).tolist()))
