"""The denoising loops of LLaDA and Dream, with Fast-dLLM's caches and threshold, and autoregressive decoding."""

import copy

import numpy as np

import sinks
from sinks import removed_keys
from torch_random import Generator, linspace32
from transformer import Cache, softmax

DEFAULTS = {
    "gen_len": 8, "steps": 8, "block_len": 8, "temperature": 0.0, "cfg": 0.0, "remasking": "low_confidence",
    "alg": "origin", "alg_temp": 0.0, "top_p": 1.0, "top_k": 0, "eps": 1e-3, "confidence_from": "tempered",
    "threshold": None, "cache": "none", "forbid_mask": False} | sinks.DEFAULTS


def control_generator(seed):
    """Controls draw from a generator seeded 2^32 further, of which PyTorch's takes the lower 32 bits."""
    return Generator((seed + 2**32) % 2**32)


class Row:
    """One sequence that a model sees again and again: its cache, and the intervention on its keys."""

    def __init__(self, model, options, control):
        self.model, self.options, self.control = model, options, control
        self.cache, self.columns, self.removed, self.step, self.own = Cache(), None, None, 0, None

    def forward(self, ids, begin, end, masked, prompt_length, begins_block=False):
        """Logits [end - begin, V] of these positions; keys and values of all others are the kept ones."""
        self.removed = None
        forgets = begins_block and self.options["sink_reset_at_block"]
        key_classes = np.where(masked, 2, np.where(np.arange(len(ids)) < prompt_length, 0, 1))
        if self.options["sink_rank"] == "own":
            if self.own is not None and not forgets:
                self.removed = self.own.removed(self.model.layers, self.model.heads, begin, end, key_classes, self.step, self.control)
        elif self.options["sink_top_k"] and self.columns is not None and not forgets:
            self.removed = removed_keys(self.columns, len(ids), key_classes, self.step, self.options, self.control)
        self.step += 1
        if begin == 0 and end == len(ids):
            self.cache = Cache()
        # The same without the intervention, by a copy of what is kept.
        if self.options["effect"]:
            self.plain = self.model.forward(ids[begin:end], begin, copy.deepcopy(self.cache))[0]
        logits, maps, _ = self.model.forward(ids[begin:end], begin, self.cache, self.removed,
                                             sinks.action_of(self.options))
        self.mass = removed_mass(maps, self.removed)
        position = np.arange(begin, end)
        classes = [~masked[begin:end] & (position < prompt_length),
                   ~masked[begin:end] & (position >= prompt_length), masked[begin:end]]
        self.by_class = np.stack([maps[:, :, rows].sum(2) for rows in classes])
        self.remember(maps if self.options["sink_from"] == "raw" else self.model.used, begin, end, key_classes)
        return logits

    def remember(self, maps, begin, end, classes):
        """Scores of the next step, of these maps [L, H, n, S]."""
        length, own = maps.shape[3], np.arange(end - begin)
        if self.options["sink_rank"] == "own":
            self.own = self.own or sinks.OwnRows(self.options, length)
            self.own.remember(maps, begin, classes)
            return
        if self.options["sink_rank"] == "last":
            if end < length:
                return
            maps, own, begin = maps[:, :, -1:] * length, own[:1], length - 1
        self.columns = maps.sum(2)
        if self.options["exclude_self"]:
            self.columns[:, :, begin + own] -= maps[:, :, own, begin + own]


def removed_mass(maps, removed):
    """[n]: what the removed keys had of each row of the raw maps [L, H, n, S], mean over layers and heads."""
    if removed is None:
        return np.zeros(maps.shape[2])
    return (maps * (removed if removed.ndim == 4 else removed[:, :, None])).sum(3).mean((0, 1))


EFFECTS = ("effect_kl", "effect_agrees", "effect_confidence", "effect_probability", "removed_mass")


def effect_of(plain, changed, forbidden=()):
    """KL(p || p'), whether the arg-max is the same, p'[x'] - p[x] and p'[x] - p[x] of one row of logits."""
    kept = np.delete(np.arange(len(plain)), forbidden)
    p, q = softmax(plain[kept]), softmax(changed[kept])
    x, y = p.argmax(), q.argmax()
    return (p * (np.log(p) - np.log(q))).sum(), x == y, q[y] - p[x], q[x] - p[x]


class Trace:
    """What a run directory holds of a sample."""

    def __init__(self):
        self.states, self.confidence, self.proposed, self.columns, self.removed = [], [], [], [], []
        self.effects = {name: [] for name in EFFECTS}

    def forward(self, ids, row):
        self.states.append(ids.copy())
        self.columns.append(row.by_class)
        shape = (row.model.layers, row.model.heads, len(ids))
        self.removed.append(np.zeros(shape, np.uint8) if row.removed is None else row.removed)
        self.confidence.append(np.full(len(ids), np.nan))
        self.proposed.append(np.full(len(ids), -1))

    def effect(self, positions, begin, length, plain, changed, mass, forbidden):
        """Rows of `plain`, `changed` and `mass` are those of the positions from `begin` on."""
        step = np.full((5, length), np.nan)
        step[1] = 255
        for p in positions:
            step[:, p] = *effect_of(plain[p - begin], changed[p - begin], forbidden), mass[p - begin]
        for name, row in zip(EFFECTS, step):
            self.effects[name].append(row)

    def chosen(self, positions, tokens, confidences):
        self.proposed[-1][positions] = tokens
        self.confidence[-1][positions] = confidences

    def finish(self, ids):
        self.states.append(ids.copy())
        return self


def surest(confidence, positions, count):
    """The `count` positions of largest confidence; ties: lower index."""
    return sorted(positions, key=lambda p: (-confidence[p], p))[:count]


def above_threshold(confidence, positions, threshold):
    """All that reach the threshold, and the surest in any case."""
    return [p for n, p in enumerate(surest(confidence, positions, len(positions))) if n == 0 or confidence[p] >= threshold]


# LLaDA

def llada(model, prompt, seed, mask_id, **changes):
    o = DEFAULTS | changes
    random, control, trace = Generator(seed), control_generator(seed), Trace()
    row, unguided = Row(model, o, control), Row(model, o, control)
    ids = np.array(list(prompt) + [mask_id] * o["gen_len"])
    given = ids != mask_id
    steps = o["steps"] // (o["gen_len"] // o["block_len"])
    fast = o["threshold"] is not None or o["cache"] != "none"
    for a in range(len(prompt), len(ids), o["block_len"]):
        b = a + o["block_len"]
        schedule = [o["block_len"] // steps + (i < o["block_len"] % steps) for i in range(steps)]
        step = 0
        while step < steps if o["threshold"] is None else True:
            begin, end = (0, len(ids)) if step == 0 else {
                "none": (0, len(ids)), "prefix": (a, len(ids)), "dual": (a, b)}[o["cache"]]
            logits = row.forward(ids, begin, end, ids == mask_id, len(prompt), step == 0)
            plain = row.plain if o["effect"] else None
            if o["cfg"] > 0:
                blind = np.where(given, mask_id, ids)
                u = unguided.forward(blind, begin, end, blind == mask_id, len(prompt), step == 0)
                logits = u + (o["cfg"] + 1) * (logits - u)
                if o["effect"]:
                    plain = unguided.plain + (o["cfg"] + 1) * (plain - unguided.plain)
            trace.forward(ids, row)
            if o["effect"]:
                fills = np.flatnonzero((ids == mask_id) & (np.arange(len(ids)) >= begin) & (np.arange(len(ids)) < (b if fast else len(ids))))
                trace.effect(fills, begin, len(ids), plain, logits, row.mass, [mask_id] * o["forbid_mask"])
            changed = llada_step(ids, logits, begin, b, schedule[step:step + 1], mask_id, random, trace, o)
            step += 1
            full = not (ids[a:b] == mask_id).any()
            if (fast and full) or (o["threshold"] is not None and not changed):
                break
    return trace.finish(ids)


def llada_step(ids, logits, begin, block_end, scheduled, mask_id, random, trace, o):
    """Opens positions of `ids`, of which logits start at `begin`; whether any mask went."""
    if o["forbid_mask"]:
        logits[:, mask_id] = -np.inf
    noisy = logits
    if o["temperature"] > 0:
        noisy = logits - o["temperature"] * np.log(-np.log(random.rand64(*logits.shape)))
    x0 = noisy.argmax(-1)
    sure = softmax(logits)[np.arange(len(x0)), x0]
    if o["remasking"] == "random":
        sure = random.rand32(len(x0)).astype(float)
    token, confidence = np.full(len(ids), mask_id), np.full(len(ids), -np.inf)
    token[begin:begin + len(x0)], confidence[begin:begin + len(x0)] = x0, sure
    masked = begin + np.flatnonzero(ids[begin:begin + len(x0)] == mask_id)
    candidates = masked[masked < block_end]
    looked_at = candidates if o["threshold"] is not None or o["cache"] != "none" else masked
    trace.proposed[-1][looked_at] = token[looked_at]
    trace.confidence[-1][candidates] = confidence[candidates]
    if o["threshold"] is None:
        opened = surest(confidence, candidates, scheduled[0])
    else:
        opened = above_threshold(confidence, candidates, o["threshold"])
    ids[opened] = token[opened]
    return (token[opened] != mask_id).any()


# Dream

def kept_ids(logits, top_p, top_k):
    """The ids that top_p, then top_k leave of one row."""
    kept = np.ones(len(logits), bool)
    if top_p < 1:
        order = np.argsort(-logits, kind="stable")
        before = np.concatenate([[0], np.cumsum(softmax(logits[order]))[:-1]])
        kept[order[before > top_p]] = False
    if top_k > 0:
        limited = np.where(kept, logits, -np.inf)
        kept &= limited >= np.sort(limited)[::-1][min(top_k, len(logits)) - 1]
    return kept


def dream_sample(logits, alg, random, o):
    """(token, confidence) of one row of logits."""
    tempered = logits / o["temperature"] if o["temperature"] > 0 else logits
    kept = kept_ids(tempered, o["top_p"], o["top_k"])
    p = softmax(np.where(kept, tempered, -np.inf))
    token = random.multinomial(p) if o["temperature"] > 0 else int(p.argmax())
    if o["confidence_from"] == "untempered":
        p = softmax(np.where(kept, logits, -np.inf))
    if alg == "topk_margin":
        first, second = np.sort(p)[::-1][:2]
        return token, first - second
    if alg == "origin" and o["threshold"] is None:
        return token, np.nan  # nothing is ranked
    if alg == "entropy":
        return token, (p * np.log(p + 1e-10)).sum()
    return token, p[token]


def dream(model, prompt, seed, mask_id, **changes):
    o = DEFAULTS | changes
    ids = np.array(list(prompt) + [mask_id] * o["gen_len"])
    run = dream_blocks if o["cache"] != "none" else dream_whole if o["threshold"] is None else dream_budget
    trace = Trace()
    run(model, ids, len(prompt), Generator(seed), mask_id, trace, o | {"control": control_generator(seed)})
    return trace.finish(ids)


def shifted_logits(row, ids, begin, end, mask_id, prompt_length, o, trace, fills=None):
    """Of the positions from `begin` on; `fills`: those that may be filled, all masks where it is None."""
    shift = lambda rows: np.concatenate([rows[:1], rows[:-1]])
    logits = shift(row.forward(ids, begin, end, ids == mask_id, prompt_length))
    if o["effect"]:
        fills = np.flatnonzero(ids == mask_id) if fills is None else fills
        trace.effect(fills, begin, len(ids), shift(row.plain), logits, shift(row.mass), [mask_id] * o["forbid_mask"])
    if o["forbid_mask"]:
        logits[:, mask_id] = -np.inf
    return logits


def dream_tokens(ids, logits, begin, positions, alg, random, trace, o):
    """Samples these positions; token and confidence, -inf elsewhere, over the whole row."""
    token, confidence = ids.copy(), np.full(len(ids), -np.inf)
    for p in positions:
        token[p], confidence[p] = dream_sample(logits[p - begin], alg, random, o)
    trace.chosen(positions, token[positions], confidence[positions])
    return token, confidence


def drawn_positions(confidence, count, random, o):
    """The surest, or with alg_temp a draw without replacement from softmax(confidence / alg_temp)."""
    if count == 0:
        return []
    if o["alg_temp"] > 0:
        noise = np.log(-np.log1p(-random.rand64(len(confidence))))
        confidence = confidence / o["alg_temp"] - noise
    return surest(confidence, range(len(confidence)), count)


def opened_count(masks, times, step):
    last = step == len(times) - 2
    return masks if last else int(np.float32(masks) * (np.float32(1) - times[step + 1] / times[step]))


def dream_whole(model, ids, prompt_length, random, mask_id, trace, o):
    """The original loop."""
    row, times = Row(model, o, o["control"]), linspace32(1, o["eps"], o["steps"] + 1)
    for i in range(o["steps"]):
        logits = shifted_logits(row, ids, 0, len(ids), mask_id, prompt_length, o, trace)
        trace.forward(ids, row)
        masked = np.flatnonzero(ids == mask_id)
        if o["alg"] == "origin":
            share = np.float32(1) if i == o["steps"] - 1 else np.float32(1) - times[i + 1] / times[i]
            opened = masked[random.rand32(len(masked)) < share]
            token, _ = dream_tokens(ids, logits, 0, opened, o["alg"], random, trace, o)
        else:
            token, confidence = dream_tokens(ids, logits, 0, masked, o["alg"], random, trace, o)
            opened = drawn_positions(confidence, opened_count(len(masked), times, i), random, o)
        ids[opened] = token[opened]


def dream_budget(model, ids, prompt_length, random, mask_id, trace, o):
    """A threshold alone: of the surest masks / steps positions, and those put off before, what passes it."""
    row = Row(model, o, o["control"])
    budget = (ids == mask_id).sum() // o["steps"]
    put_off, step = 0, 0
    while True:
        logits = shifted_logits(row, ids, 0, len(ids), mask_id, prompt_length, o, trace)
        trace.forward(ids, row)
        masked = np.flatnonzero(ids == mask_id)
        token, confidence = dream_tokens(ids, logits, 0, masked, o["alg"], random, trace, o)
        count = min(max((budget if step < o["steps"] else 0) + put_off, 1), len(masked))
        opened = above_threshold(confidence, surest(confidence, masked, count), o["threshold"])
        put_off = count - len(opened)
        ids[opened] = token[opened]
        step += 1
        if not (ids == mask_id).any() or (token[opened] == mask_id).all():
            break


def dream_blocks(model, ids, prompt_length, random, mask_id, trace, o):
    """Fast-dLLM's block version: each block's first token is written at once from a full forward."""
    row = Row(model, o, o["control"])
    steps = o["steps"] // (o["gen_len"] // o["block_len"])
    times = linspace32(1, o["eps"], steps + 1)
    for a in range(prompt_length, len(ids), o["block_len"]):
        b = a + o["block_len"]
        logits = shifted_logits(row, ids, 0, len(ids), mask_id, prompt_length, o, trace, [a])
        trace.forward(ids, row)
        token, _ = dream_tokens(ids, logits, 0, np.array([a]), o["alg"], random, trace, o)
        ids[a] = token[a]
        step = 1
        while (ids[a:b] == mask_id).any():
            if o["threshold"] is None and step == steps:
                break
            end = len(ids) if o["cache"] == "prefix" else b
            fills = a + np.flatnonzero(ids[a:b if o["cache"] == "dual" else len(ids)] == mask_id)
            logits = shifted_logits(row, ids, a, end, mask_id, prompt_length, o, trace, fills[fills < b])
            trace.forward(ids, row)
            masked = a + np.flatnonzero(ids[a:b] == mask_id)
            token, confidence = dream_tokens(ids, logits, a, masked, o["alg"], random, trace, o)
            if o["threshold"] is None:
                opened = drawn_positions(confidence, opened_count(len(masked), times, step), random, o)
            else:
                opened = above_threshold(confidence, masked, o["threshold"])
            ids[opened] = token[opened]
            step += 1
            if o["threshold"] is not None and len(opened) > 0 and (token[opened] == mask_id).all():
                break


# Autoregressive

def autoregressive(model, prompt, gen_len, seed=0, **changes):
    """Greedy, with kept keys: (ids, last rows [L, H, n] of each token, removed keys of each from the second on, effects)."""
    o = sinks.DEFAULTS | changes
    ids, cache, rows, removals, control, effects = list(prompt), Cache(), [], [], control_generator(seed), []
    sums = queries = None  # over all queries so far: column sums [L, H, n], queries that see the key [L, n]
    for step in range(gen_len):
        removed = None
        if o["sink_top_k"] and step > 0:
            competing = [list(np.flatnonzero(rows[-1][layer].max(0))) for layer in range(model.layers)]
            count = np.array([len(keys) for keys in competing])[:, None, None]
            score = {"usual": rows[-1] * count, "last": rows[-1] * count, "columns": sums,
                     "visible": sums / queries[:, None] * (len(ids) - 1)}[o["sink_rank"]]
            classes = [0 if p < len(prompt) else 1 for p in range(len(ids))]
            removed = removed_keys(score, len(ids), classes, step, o, control, competing)
            removals.append(removed)
        begin = 0 if step == 0 else len(ids) - 1
        plain = model.forward(ids[begin:], begin, copy.deepcopy(cache))[0] if o["effect"] else None
        logits, maps, _ = model.forward(ids[begin:], begin, cache, removed, sinks.action_of(o))
        if o["effect"]:
            effects.append((*effect_of(plain[-1], logits[-1]), removed_mass(maps, removed)[-1]))
        rows.append(maps[:, :, -1])
        grown = [(0, 0), (0, 0), (0, 1)]
        sums = maps.sum(2) if sums is None else np.pad(sums, grown) + maps.sum(2)
        seen = (maps.max(1) > 0).sum(1)
        queries = seen if queries is None else np.pad(queries, grown[1:]) + seen
        ids.append(int(logits[-1].argmax()))
    return ids, rows, removals, effects
