"""Variants of attention: rows of similarities, their slots and biases, and the tensors that they add."""

import numpy as np


def variant_of(config):
    return config.get("sinkscope_attention", {})


def positions_of(config):
    return variant_of(config).get("positions", "rope")


def with_variant(config, **variant):
    """The config of a class of its own that has this variant."""
    olmo = "d_model" in config
    changes = {"architectures": ["SinkscopeLLaDAModel" if olmo else "SinkscopeLlamaForCausalLM"],
               "model_type": "sinkscope-llada" if olmo else "sinkscope-llama", "sinkscope_attention": variant}
    if olmo:
        changes |= {"rope": "positions" not in variant, "alibi": variant.get("positions") == "alibi"}
    return config | changes


def block_tensors(config, heads, kv_heads, head_dim):
    """(name, shape) of what a layer learns for its variant."""
    variant = variant_of(config)
    slot_heads = 1 if variant.get("slot_shared") else kv_heads
    tensors = {}
    if variant.get("slot") in ("key-bias", "key-value-bias"):
        tensors["bias_k"] = [slot_heads, variant.get("slot_dims", head_dim)]
    if variant.get("slot") == "key-value-bias":
        tensors["bias_v"] = [slot_heads, head_dim]
    if variant.get("value_bias"):
        tensors["bias_out"] = [heads, head_dim]
    if positions_of(config) == "relative":
        tensors["relative_bias"] = [heads, 32]
    if variant.get("similarity") == "mlp-kernel":
        tensors |= {"kernel_in.weight": [head_dim, head_dim], "kernel_out.weight": [head_dim, head_dim]}
    return tensors


def outer_tensors(config, width, positions):
    olmo, variant, tensors = "d_model" in config, variant_of(config), {}
    if variant.get("positions") == "learned":
        tensors["model.transformer.wpe.weight" if olmo else "model.embed_positions.weight"] = [positions, width]
    if variant.get("slot") == "sink-token":
        tensors["model.transformer.sink_token" if olmo else "model.sink_token"] = [width]
    return tensors


def slot_of(variant, block, kv_head, head_dim):
    """(key, value) of a head's slot that is not a token."""
    own = 0 if variant.get("slot_shared") else kv_head
    key = np.zeros(head_dim)
    learnt = block["bias_k"][own]
    key[:len(learnt)] = learnt
    if variant["slot"] == "key-value-bias":
        return key, block["bias_v"][own]
    direction = {"zero": np.zeros(head_dim), "first": np.eye(head_dim)[0],
                 "uniform": np.ones(head_dim) / np.sqrt(head_dim)}[variant.get("slot_value", "zero")]
    return key, variant.get("slot_value_norm", 0) * direction


def sinusoids(positions, width):
    angles = np.asarray(positions)[:, None] / 10000 ** (2 * np.arange(width // 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)], -1)


def bucket(distance, causal):
    """T5's of a distance i - j."""
    buckets = 32 if causal else 16
    later = 16 if not causal and distance < 0 else 0
    distance = max(distance, 0) if causal else abs(distance)
    exact = buckets // 2
    if distance < exact:
        return later + distance
    far = exact + int(np.log(distance / exact) / np.log(128 / exact) * exact + 1e-9)
    return later + min(buckets - 1, far)


def slope(head, heads):
    power = 1 << (heads.bit_length() - 1)
    if head < power:
        return 2.0 ** (-8 * (head + 1) / power)
    return 2.0 ** (-8 * (2 * (head - power) + 1) / (2 * power))


def position_bias(config, block, head, heads, distance, causal):
    """Added to q.k / sqrt(d); `distance` [n, S] are the differences of positions."""
    kind = positions_of(config)
    if kind == "alibi":
        return -slope(head, heads) * abs(distance)
    if kind in ("relative", "relative-bucket"):
        number = np.vectorize(lambda d: bucket(d, causal), otypes=[int])(distance)
        return number if kind == "relative-bucket" else block["relative_bias"][head][number]
    return 0.0


def elu_plus_one(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def scores_of(variant, block, q, k, bias):
    """[n, S]: the kernel's similarity, or s = q.k / sqrt(d) + bias of which the others are functions."""
    root = np.sqrt(q.shape[-1])
    kind = variant.get("similarity", "softmax")
    if kind == "elu-kernel":
        return elu_plus_one(q) @ elu_plus_one(k).T / root
    if kind == "mlp-kernel":
        phi = lambda x: np.maximum(x @ block["kernel_in.weight"].T, 0) @ block["kernel_out.weight"].T
        return phi(q) @ phi(k).T / root
    return q @ k.T / root + bias


def rows_of(variant, scores, visible):
    """(what weighs the values, the same as attention of sum 1); rows that see nothing are zero."""
    kind, p = variant.get("similarity", "softmax"), variant.get("p", 1)
    if kind == "softmax":
        scores = scores - np.where(visible, scores, -np.inf).max(-1, keepdims=True, initial=-1e30)
    similar = {"softmax": np.exp, "sigmoid": lambda s: 1 / (1 + np.exp(-s)), "elu-plus-one": elu_plus_one}.get(kind, lambda s: s)
    rows = np.where(visible, similar(np.where(visible, scores, 0)), 0)
    total = np.abs(rows).sum(-1, keepdims=True)
    shares = np.divide(np.abs(rows), total, out=np.zeros_like(rows), where=total > 0)
    if variant.get("normalised", True):
        if kind in ("linear-kernel", "mlp-kernel"):
            rows = rows / np.maximum(np.abs(rows.sum(-1, keepdims=True)), 1)
        else:
            z = (rows ** p).sum(-1, keepdims=True) ** (1 / p)
            rows = np.divide(rows, z, out=np.zeros_like(rows), where=z > 0)
    return variant.get("scale", 1) * rows, shares
