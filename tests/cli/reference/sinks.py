"""Which keys an intervention removes: rule `paper` on raw scores of the previous step, and controls of equal budget."""

import numpy as np

CLASSES = ("prompt", "decoded", "masked")
DEFAULTS = {"sink_top_k": 0, "epsilon": 0.0, "sink_rank": "usual", "sink_control": "none", "sink_layers": "",
            "sink_heads": "", "sink_steps": "", "sink_positions": ",".join(CLASSES), "sink_reset_at_block": False,
            "sink_action": "remove", "sink_eta": 1.0, "sink_from": "raw", "exclude_self": False, "mask_sink_ratio": 1.0,
            "sink_rule": "paper", "sink_scale": "sum", "effect": False}


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


def share_of(pick, options):
    return pick[:int(np.ceil(options["mask_sink_ratio"] * len(pick) - 1e-9))]


def chosen(scores, keys, classes, options, generator):
    """The keys one head loses. `keys` are those that compete, `classes` [S] what every position holds."""
    allowed = {j for j in keys if CLASSES[classes[j]] in options["sink_positions"].split(",")}
    if options["sink_rule"] == "topk":
        pick = sorted(allowed, key=lambda j: (-scores[j], j))[:options["sink_top_k"]]
    else:
        unit = {"sum": 1, "mean": 1 / len(keys), "percent": 100 / len(keys)}[options["sink_scale"]]
        pick = picked(scores * unit, keys, allowed, options["sink_top_k"], options["epsilon"])
    pick = share_of(pick, options)
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


class OwnRows:
    """Rank `own`: what each position attended when it was last computed, and the keys it may lose by that."""

    def __init__(self, options, length):
        self.options, self.length = options, length
        self.most, self.least = {}, {}  # (layer, head, position) -> keys

    def allowed(self, classes):
        return [j for j in range(self.length) if CLASSES[classes[j]] in self.options["sink_positions"].split(",")]

    def remember(self, maps, begin, classes):
        """Maps [L, H, n, S] of the positions from `begin` on."""
        for layer, head, query in np.ndindex(*maps.shape[:3]):
            own = begin + query
            place = layer, head, own
            allowed = [j for j in self.allowed(classes) if not (self.options["exclude_self"] and j == own)]
            row = maps[place[0], place[1], query]
            keys = [j for j in range(self.length) if not (self.options["exclude_self"] and j == own)]
            scale = {"sum": self.length, "mean": 1, "percent": 100}[self.options["sink_scale"]]
            if self.options["sink_rule"] == "topk":
                self.most[place] = sorted(allowed, key=lambda j: (-row[j], j))[:self.options["sink_top_k"]]
            else:
                self.most[place] = picked(row * scale, keys, set(allowed), self.options["sink_top_k"], self.options["epsilon"])
            self.least[place] = sorted(allowed, key=lambda j: (row[j], j))[:2 * self.options["sink_top_k"]]

    def removed(self, layers, heads, begin, end, classes, step, generator):
        """[L, H, end - begin, S], 1 = removed."""
        removed = np.zeros((layers, heads, end - begin, self.length), np.uint8)
        if not named(self.options["sink_steps"], step):
            return removed
        for layer, head, query in np.ndindex(*removed.shape[:3]):
            if named(self.options["sink_layers"], layer) and named(self.options["sink_heads"], head):
                removed[layer, head, query, self.chosen((layer, head, begin + query), classes, generator)] = 1
        return removed

    def chosen(self, place, classes, generator):
        allowed = self.allowed(classes)
        pick = share_of([j for j in self.most.get(place, []) if j in allowed], self.options)
        others = [j for j in allowed if j not in pick and not (self.options["exclude_self"] and j == place[2])]
        control = self.options["sink_control"]
        if control == "bottom":
            return [j for j in self.least.get(place, []) if j in others][:len(pick)]
        if control == "random":
            return one_by_one(others, len(pick), generator)
        if control == "matched":
            return [j for c in range(3) for j in one_by_one([o for o in others if classes[o] == c],
                                                            sum(classes[p] == c for p in pick), generator)]
        return pick


def one_by_one(others, count, generator):
    """`count` of the others, or all, each the floor(u m)-th of the m that are left."""
    others, drawn = list(others), []
    while len(drawn) < count and others:
        drawn.append(others.pop(int(generator.rand64(1)[0] * len(others))))
    return drawn
