"""Log-likelihoods of a target after a prefix, as the authors' evaluation wrappers estimate them."""

import numpy as np

from torch_random import Generator, linspace32


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def guided(model, ids, prefix_length, mask_id, cfg):
    logits = model.forward(ids)[0]
    if cfg > 0:
        blind = np.concatenate([np.full(prefix_length, mask_id), ids[prefix_length:]])
        u = model.forward(blind)[0]
        logits = u + (cfg + 1) * (logits - u)
    return logits


def llada(model, prefix, target, seed, mask_id, mc_num, batch, cfg=0.0):
    random, ids = Generator(seed), np.array(prefix + target)
    length, first = len(target), len(prefix)
    losses = []
    for _ in range(mc_num // batch):
        k = random.randint(1, length + 1)
        counts = np.round(linspace32(k, k + (batch - 1) * (length / batch), batch)).astype(int)
        loss = 0
        for count in (counts - 1) % length + 1:
            masked = first + np.flatnonzero(random.randperm(length) < count)
            noisy = ids.copy()
            noisy[masked] = mask_id
            logs = log_softmax(guided(model, noisy, first, mask_id, cfg))
            loss -= logs[masked, ids[masked]].sum() / (count / length)
        losses.append(loss / batch)
    return -np.mean(losses)


def llada_greedy(model, prefix, target, mask_id, cfg=0.0):
    ids = np.array(prefix + [mask_id] * len(target))
    for _ in target:
        masked = np.flatnonzero(ids == mask_id)
        logs = log_softmax(guided(model, ids, len(prefix), mask_id, cfg))[masked]
        best = logs.max(-1).argmax()
        ids[masked[best]] = logs[best].argmax()
    return ids[len(prefix):].tolist() == target


def shifted(model, ids):
    logits = model.forward(ids)[0]
    return log_softmax(np.concatenate([logits[:1], logits[:-1]]))


def dream_mc(model, prefix, target, seed, mask_id, mc_num, batch, log_type="ftb", eps=1e-3):
    random, ids = Generator(seed), np.array(prefix + target)
    scored = {"ftb": slice(len(prefix), None), "btf": slice(0, len(prefix)), "union": slice(None)}[log_type]
    losses = []
    for _ in range(max(mc_num // batch, 1)):
        t = (random.rand32(1) + np.arange(batch, dtype=np.float32) / np.float32(batch)) % np.float32(1)
        p = np.float32(1 - eps) * t + np.float32(eps)
        hit = random.rand32(batch, len(ids)) < p[:, None]
        hit[:, [0, -1]] = False
        loss = 0
        for r in range(batch):
            noisy = ids.copy()
            noisy[scored] = np.where(hit[r], mask_id, ids)[scored]
            masked = np.flatnonzero(noisy == mask_id)
            loss -= shifted(model, noisy)[masked, ids[masked]].sum() / p[r]
        losses.append(loss / batch)
    return -np.mean(losses) / (len(ids) if log_type == "union" else 1)


def dream_chain(model, prefix, target, mask_id, forwards):
    """Token r given those before it (forwards) or behind it."""
    total, ids = 0, np.array(prefix + target)
    for r in range(len(prefix), len(ids)):
        noisy = ids.copy()
        noisy[slice(r, None) if forwards else slice(len(prefix), r + 1)] = mask_id
        total += shifted(model, noisy)[r, ids[r]]
    return total


def autoregressive(model, prefix, target):
    """(log-likelihood, whether every target token is the likeliest)."""
    logs = log_softmax(model.forward(np.array(prefix + target)[:-1])[0])[len(prefix) - 1:]
    return logs[np.arange(len(target)), target].sum(), logs.argmax(-1).tolist() == target
