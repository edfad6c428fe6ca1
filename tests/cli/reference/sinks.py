"""Which keys an intervention removes: rule `paper` on raw scores of the previous step, and controls of equal budget."""

import numpy as np

CLASSES = ("prompt", "decoded", "masked")
DEFAULTS = {"sink_top_k": 0, "epsilon": 0.0, "sink_rank": "usual", "sink_control": "none", "sink_layers": "",
            "sink_heads": "", "sink_steps": "", "sink_positions": ",".join(CLASSES), "sink_reset_at_block": False,
            "sink_action": "remove", "sink_eta": 1.0}


def action_of(options):
    return options["sink_action"], options["sink_eta"]


def named(text, number):
    """Whether "0-3,7" names the number; "" names all."""
    if not text:
        return True
    ends = [part.split("-") for part in text.split(",")]
    return any(int(end[0]) <= number <= int(end[-1]) for end in ends)


def picked(scores, keys, allowed, top_k, epsilon):
    """The top_k largest of `keys` that exceed the mean of the others by epsilon and are allowed; ties: lower index."""
    if len(keys) < 2:
        return []  # no others whose mean it could exceed
    total = scores[keys].sum()

    def stands_out(j):
        bound = (total - scores[j]) / (len(keys) - 1) + epsilon
        return scores[j] - bound > 1e-6 * max(scores[j], bound)

    return sorted([j for j in keys if j in allowed and stands_out(j)], key=lambda j: (-scores[j], j))[:top_k]


def drawn(others, count, generator):
    """`count` of the others, or all; the generator is asked only when there is something to draw."""
    return [others[i] for i in generator.randperm(len(others))[:count]] if count and others else []


def chosen(scores, keys, classes, options, generator):
    """The keys one head loses. `keys` are those that compete, `classes` [S] what every position holds."""
    allowed = {j for j in keys if CLASSES[classes[j]] in options["sink_positions"].split(",")}
    pick = picked(scores, keys, allowed, options["sink_top_k"], options["epsilon"])
    others = [j for j in keys if j in allowed and j not in pick]
    if options["sink_control"] == "random":
        return drawn(others, len(pick), generator)
    if options["sink_control"] == "bottom":
        return sorted(others, key=lambda j: (scores[j], j))[:len(pick)]
    if options["sink_control"] == "matched":
        return [j for c in range(3) for j in drawn([o for o in others if classes[o] == c],
                                                   sum(classes[p] == c for p in pick), generator)]
    return pick


def removed_keys(scores, positions, classes, step, options, generator, competing=None):
    """[L, H, positions], 1 = removed, from scores [L, H, S], S <= positions; competing[layer]: the keys that do."""
    removed = np.zeros((*scores.shape[:2], positions), np.uint8)
    if not named(options["sink_steps"], step):
        return removed
    for layer in range(scores.shape[0]):
        for head in range(scores.shape[1]):
            if named(options["sink_layers"], layer) and named(options["sink_heads"], head):
                keys = list(range(scores.shape[2])) if competing is None else competing[layer]
                removed[layer, head, chosen(scores[layer, head], keys, classes, options, generator)] = 1
    return removed
