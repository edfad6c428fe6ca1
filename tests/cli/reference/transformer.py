"""The forward pass of every family in float64, written as the equations stand, one head at a time."""

import numpy as np

import checkpoints


def softmax(x):
    """Over the last axis; rows of nothing but -inf give zeros."""
    top = x.max(-1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def silu(x):
    return x / (1 + np.exp(-x))


def frequencies(config, head_dim):
    """RoPE's inverse frequencies [head_dim / 2], stretched where the config says so."""
    inverse = config["rope_theta"] ** (-np.arange(0, head_dim, 2) / head_dim)
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "linear":
        return inverse / scaling["factor"]
    if kind == "llama3":
        original, low, high = (scaling[key] for key in
                               ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
        stretched = []
        for f in inverse:
            wavelength = 2 * np.pi / f
            if wavelength < original / high:
                stretched.append(f)
            elif wavelength > original / low:
                stretched.append(f / scaling["factor"])
            else:
                s = (original / wavelength - low) / (high - low)
                stretched.append((1 - s) * f / scaling["factor"] + s * f)
        return np.array(stretched)
    return inverse


def window_of(config, layer):
    """How many keys, its own among them, a query of this layer sees; None: all."""
    if config["model_type"] == "mistral":
        return config.get("sliding_window")
    if config.get("use_sliding_window") and layer >= config["max_window_layers"]:
        return config["sliding_window"]
    return None


class Transformer:
    def __init__(self, config, weights):
        self.config = config
        self.layers, self.width, self.heads, self.kv_heads, self.head_dim = checkpoints.sizes_of(config)
        self.eps = config["rms_norm_eps"]
        self.causal = config["model_type"] in ("llama", "mistral", "qwen2", "qwen3")
        self.frequencies = frequencies(config, self.head_dim)
        embedding, norm, head = checkpoints.outer_names(config)
        self.embedding = weights[embedding].astype(float)
        self.last_norm = weights[norm].astype(float)
        self.head = self.embedding if checkpoints.is_tied(config) else weights[head].astype(float)
        self.blocks = []
        for layer in range(self.layers):
            names = checkpoints.block_tensors(config)
            block = {name: weights[checkpoints.file_name(config, layer, name)].astype(float) for name in names}
            for name in ("mlp.gate.expert_bias", "mlp.expert_bias"):
                if f"model.layers.{layer}.{name}" in weights:
                    block["selection_bias"] = weights[f"model.layers.{layer}.{name}"].astype(float)
            self.blocks.append(block)

    def norm(self, x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * weight

    def linear(self, x, block, name):
        y = x @ block[name].T
        return y + block[name + ".bias"] if name + ".bias" in block else y

    def rotate(self, x, positions):
        """RoPE of [n, heads, head_dim]: value i pairs with value i + head_dim / 2."""
        angles = positions[:, None, None] * self.frequencies
        cos, sin = np.cos(angles), np.sin(angles)
        low, high = np.split(x, 2, -1)
        return np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)

    def mlp(self, x, block, suffix=""):
        return (silu(x @ block["gate" + suffix].T) * (x @ block["up" + suffix].T)) @ block["down" + suffix].T

    def experts(self, x, block):
        """Softmax over all experts, top k of each token, weights as they are or scaled to sum to 1."""
        shares = softmax(x @ block["router"].T)
        y = np.zeros_like(x)
        for token in range(len(x)):
            chosen = np.argsort(-(shares[token] + block.get("selection_bias", 0)))[:self.config["num_experts_per_tok"]]
            total = shares[token, chosen].sum() if self.config.get("norm_topk_prob") else 1
            for expert in chosen:
                y[token] += shares[token, expert] / total * self.mlp(x[token], block, f".{expert}")
        return y

    def attention(self, h, layer, positions, cache, removed, maps):
        """One block's attention; keys are cached before RoPE. Appends the raw map [H, n, S] to `maps`."""
        block, n = self.blocks[layer], len(h)
        q = self.linear(h, block, "q_proj").reshape(n, self.heads, -1)
        k = self.linear(h, block, "k_proj").reshape(n, self.kv_heads, -1)
        v = self.linear(h, block, "v_proj").reshape(n, self.kv_heads, -1)
        if "q_norm" in block:
            q, k = self.norm(q, block["q_norm"]), self.norm(k, block["k_norm"])
        k, v = cache.store(layer, positions, k, v)
        everywhere = np.arange(len(k))
        q, k = self.rotate(q, positions), self.rotate(k, everywhere)
        distance = positions[:, None] - everywhere
        visible = np.ones_like(distance, bool)
        if self.causal:
            visible = distance >= 0
            if window_of(self.config, layer):
                visible &= distance < window_of(self.config, layer)
        outputs, raw = [], []
        for head in range(self.heads):
            kv_head = head // (self.heads // self.kv_heads)
            scores = np.where(visible, q[:, head] @ k[:, kv_head].T / np.sqrt(self.head_dim), -np.inf)
            raw.append(softmax(scores))
            used = raw[-1] if removed is None else softmax(np.where(removed[layer, head] > 0, -np.inf, scores))
            outputs.append(used @ v[:, kv_head])
        maps.append(np.stack(raw))
        return self.linear(np.concatenate(outputs, -1), block, "o_proj")

    def forward(self, ids, first=0, cache=None, removed=None):
        """ids stand at positions first, first + 1, ...; `removed` [L, H, S] keys are seen by no query.

        Returns logits [n, V], raw attention maps [L, H, n, S] and norms of the residual stream [L + 1, n].
        """
        cache = Cache() if cache is None else cache
        positions = first + np.arange(len(ids))
        x = self.embedding[ids]
        maps, norms = [], [np.linalg.norm(x, axis=-1)]
        for layer, block in enumerate(self.blocks):
            x = x + self.attention(self.norm(x, block["input_norm"]), layer, positions, cache, removed, maps)
            h = self.norm(x, block["mlp_norm"])
            x = x + (self.experts(h, block) if "router" in block else self.mlp(h, block))
            norms.append(np.linalg.norm(x, axis=-1))
        return self.norm(x, self.last_norm) @ self.head.T, np.stack(maps), np.stack(norms)


class Cache:
    """Keys before RoPE and values of every layer; what is computed again is written over."""

    def __init__(self):
        self.kept = {}

    def store(self, layer, positions, k, v):
        old = self.kept.get(layer)
        length = max(positions[-1] + 1, 0 if old is None else len(old[0]))
        keys, values = np.zeros((length, *k.shape[1:])), np.zeros((length, *v.shape[1:]))
        if old is not None:
            keys[:len(old[0])], values[:len(old[1])] = old
        keys[positions], values[positions] = k, v
        self.kept[layer] = keys, values
        return keys, values
