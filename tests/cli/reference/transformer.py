"""The forward pass of every family in float64, written as the equations stand, one head at a time."""

import numpy as np

import checkpoints
import variants


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
    if config["model_type"] in ("mistral", "sinkscope-llama"):
        return config.get("sliding_window")
    if config.get("use_sliding_window") and layer >= config["max_window_layers"]:
        return config["sliding_window"]
    return None


class Transformer:
    def __init__(self, config, weights):
        self.config = config
        self.layers, self.width, self.heads, self.kv_heads, self.head_dim = checkpoints.sizes_of(config)
        self.eps = config["rms_norm_eps"]
        self.causal = config["model_type"] in ("llama", "mistral", "qwen2", "qwen3", "sinkscope-llama")
        self.variant = variants.variant_of(config)
        self.frequencies = frequencies(config, self.head_dim)
        embedding, norm, head = checkpoints.outer_names(config)
        self.embedding = weights[embedding].astype(float)
        self.post_norm = self.variant.get("post_norm", False)
        self.last_norm = None if self.post_norm else weights[norm].astype(float)
        self.sink_token, self.position_table = None, None
        for name, tensor in weights.items():
            if name.endswith("sink_token"):
                self.sink_token = tensor.astype(float)
            if name.endswith(("wpe.weight", "embed_positions.weight")):
                self.position_table = tensor.astype(float)
        self.head = self.embedding if checkpoints.is_tied(config) else weights[head].astype(float)
        self.seen = None  # a list: (q, k, v) of every layer's text, as its scores are made of them
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

    def changed(self, used, v, scores, visible, gone, slots, action):
        """(weights, their shares, output) after (name, eta) is done to the keys that are `gone` [n or 1, S]; `slots` keys
        stand in front."""
        name, eta = action
        if name == "remove":
            used, shares = variants.rows_of(self.variant, scores, visible & ~gone)
            return shares, used @ v
        if name == "scale":
            scaled = used * np.where(gone, eta, 1)
            if self.variant.get("normalised", True):
                scaled *= np.abs(used).sum(-1, keepdims=True) / np.abs(scaled).sum(-1, keepdims=True)
            return np.abs(scaled) / np.abs(scaled).sum(-1, keepdims=True), scaled @ v
        other = v[slots:].mean(0) if name == "value-mean" else 0
        return None, (used * ~gone) @ v + (used * gone).sum(-1, keepdims=True) * other

    def attention(self, h, layer, positions, cache, removed, maps, action):
        """One block's attention; keys are cached before RoPE. Appends the raw map [H, n, S] to `maps`."""
        block, n = self.blocks[layer], len(h)
        q = self.linear(h, block, "q_proj").reshape(n, self.heads, -1)
        k = self.linear(h, block, "k_proj").reshape(n, self.kv_heads, -1)
        v = self.linear(h, block, "v_proj").reshape(n, self.kv_heads, -1)
        if "q_norm" in block:
            q, k = self.norm(q, block["q_norm"]), self.norm(k, block["k_norm"])
        k, v = cache.store(layer, positions, k, v)
        everywhere = np.arange(len(k))
        if variants.positions_of(self.config) == "rope":
            q, k = self.rotate(q, positions), self.rotate(k, everywhere)
        if self.seen is not None:
            text = slice(0 if self.sink_token is None else 1, None)
            self.seen.append((q[text], k[text], v[text]))
        distance = positions[:, None] - everywhere
        visible = self.visible(distance, everywhere, layer)
        outputs, raw, changed = [], [], []
        for head in range(self.heads):
            gone = None if removed is None else np.atleast_2d(removed[layer, head] > 0)
            output, shares, shares_used = self.head_rows(block, head, q, k, v, distance, visible, gone, action)
            raw.append(shares)
            changed.append(shares_used)
            outputs.append(output + (block["bias_out"][head] if "bias_out" in block else 0))
        maps.append(np.stack(raw))
        self.used.append(np.stack(changed))
        return self.linear(np.concatenate(outputs, -1), block, "o_proj")

    def visible(self, distance, everywhere, layer):
        """[n, S]: which keys a query sees. A sink token, where there is one, is key 0: all see it, it sees itself."""
        visible = np.ones_like(distance, bool)
        if self.causal:
            visible = distance >= 0
            if window_of(self.config, layer):
                visible &= distance < window_of(self.config, layer)
            visible |= everywhere < self.variant.get("prefix", 0) + (self.sink_token is not None)
        if self.sink_token is not None:
            visible[:, 0] = True
            visible[0, 1:] = False
        return visible

    def head_rows(self, block, head, q, k, v, distance, visible, gone, action):
        """(output, the raw shares of the text's keys, the shares after the action) of one head."""
        kv_head = head // (self.heads // self.kv_heads)
        q, k, v = q[:, head], k[:, kv_head], v[:, kv_head]
        bias = np.zeros(distance.shape) + variants.position_bias(
            self.config, block, head, self.heads, distance, self.causal)
        if "bias_k" in block:
            key, value = variants.slot_of(self.variant, block, kv_head, self.head_dim)
            k, v = np.vstack([key, k]), np.vstack([value, v])
            bias, visible = (np.pad(x, ((0, 0), (1, 0)), constant_values=fill) for x, fill in ((bias, 0), (visible, True)))
        if self.sink_token is not None:
            bias[:, 0] = bias[0] = 0
        scores = variants.scores_of(self.variant, block, q, k, bias)
        used, shares = variants.rows_of(self.variant, scores, visible)
        output, shares_used = used @ v, shares
        if gone is not None:
            slots = len(k) - gone.shape[1]
            gone = np.pad(gone, ((len(q) - len(gone) if len(gone) > 1 else 0, 0), (slots, 0)))  # a sink token loses nothing
            after, output = self.changed(used, v, scores, visible, gone, slots, action)
            shares_used = shares if after is None else after
        text = slice(1, None) if len(k) > distance.shape[1] or self.sink_token is not None else slice(None)
        return output, shares[:, text], shares_used[:, text]

    def forward(self, ids, first=0, cache=None, removed=None, action=("remove", 1)):
        """ids stand at positions first, first + 1, ...; to `removed` [L, H, S] keys, or those of each query
        [L, H, n, S], the action is done.

        Returns logits [n, V], raw attention maps [L, H, n, S] and norms of the residual stream [L + 1, n]; the maps after
        the action stay in `used`.
        """
        self.used = []
        cache = Cache() if cache is None else cache
        x, positions = self.embed(ids, first)
        maps, norms = [], [np.linalg.norm(x, axis=-1)]
        for layer, block in enumerate(self.blocks):
            before = (lambda x, norm: x) if self.post_norm else self.norm
            behind = self.norm if self.post_norm else lambda x, norm: x
            h = before(x, block["input_norm"])
            x = behind(x + self.attention(h, layer, positions, cache, removed, maps, action), block["input_norm"])
            h = before(x, block["mlp_norm"])
            x = behind(x + (self.experts(h, block) if "router" in block else self.mlp(h, block)), block["mlp_norm"])
            norms.append(np.linalg.norm(x, axis=-1))
        text = slice(len(x) - len(ids), None)  # without the sink token
        logits = (x if self.post_norm else self.norm(x, self.last_norm)) @ self.head.T
        self.used = np.stack(self.used)[:, :, text]
        return logits[text], np.stack(maps)[:, :, text], np.stack(norms)[:, text]

    def embed(self, ids, first):
        """Rows and their positions; a sink token goes in front of every call's, with no position of its own added."""
        shift = 0 if self.sink_token is None else 1
        positions = shift + first + np.arange(len(ids))
        x = self.embedding[ids]
        if self.position_table is not None:
            x = x + self.position_table[positions]
        if variants.positions_of(self.config) == "sinusoid":
            x = x + variants.sinusoids(positions, self.width)
        if shift:
            x, positions = np.vstack([self.sink_token, x]), np.concatenate([[0], positions])
        return x, positions


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
