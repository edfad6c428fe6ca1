"""Checkpoints of random weights in every layout: config.json, model.safetensors, a tokenizer of bytes."""

import json
import os

import numpy as np

import variants

OLMO_BLOCK = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "o_proj": "attn_out",
              "input_norm": "attn_norm", "mlp_norm": "ff_norm", "gate": "ff_proj", "up": "up_proj", "down": "ff_out"}
LLAMA_BLOCK = {"q_proj": "self_attn.q_proj", "k_proj": "self_attn.k_proj", "v_proj": "self_attn.v_proj",
               "o_proj": "self_attn.o_proj", "q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm",
               "input_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm",
               "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj", "router": "mlp.gate"}

IDS = 90          # rows of the embedding; see bytes_tokenizer
MASK_ID = 89
EOS_ID = 88
BOS_ID = 87


def llada_config(**changes):
    config = {
        "architectures": ["LLaDAModelLM"], "model_type": "llada", "d_model": 32, "n_layers": 2, "n_heads": 4,
        "n_kv_heads": 4, "mlp_hidden_size": 48, "activation_type": "silu", "block_type": "llama",
        "vocab_size": IDS, "embedding_size": IDS, "rope": True, "rope_theta": 500000.0, "rms_norm_eps": 1e-5,
        "layer_norm_type": "rms", "include_bias": False, "weight_tying": False, "max_sequence_length": 4096,
        "mask_token_id": MASK_ID, "eos_token_id": EOS_ID, "pad_token_id": EOS_ID}
    return config | changes


def llama_config(architecture, model_type, **changes):
    config = {
        "architectures": [architecture], "model_type": model_type, "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": IDS,
        "hidden_act": "silu", "rope_theta": 10000.0, "rms_norm_eps": 1e-6, "max_position_embeddings": 2048,
        "tie_word_embeddings": False, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID}
    return config | changes


def dream_config(**changes):
    return llama_config("DreamModel", "Dream", mask_token_id=MASK_ID, pad_token_id=EOS_ID, **changes)


def moe_config(**changes):
    config = llama_config("LLaDAMoEModel", "llada", num_key_value_heads=4, num_experts=6, num_experts_per_tok=2,
                          expert_intermediate_size=24, qk_layernorm=True, mask_token_id=MASK_ID, rope_theta=50000.0)
    del config["intermediate_size"]
    return config | changes


def is_olmo(config):
    return "d_model" in config


def sizes_of(config):
    """(layers, width, heads, kv_heads, head_dim) in either school of key names."""
    if is_olmo(config):
        heads = config["n_heads"]
        return config["n_layers"], config["d_model"], heads, config["n_kv_heads"], config["d_model"] // heads
    heads = config["num_attention_heads"]
    width = config["hidden_size"]
    return config["num_hidden_layers"], width, heads, config["num_key_value_heads"], config.get("head_dim") or width // heads


def biases_of(config):
    """The projections that have a bias, in the order in which their weights are drawn."""
    if config["model_type"] in ("qwen2", "Dream"):
        return ["q_proj", "k_proj", "v_proj"]
    return ["q_proj", "k_proj", "v_proj", "o_proj"] if config.get("attention_bias") else []


def has_qk_norm(config):
    return config["model_type"] == "qwen3" or "num_experts" in config


def positions_of(config):
    return config.get("max_sequence_length") or config.get("max_position_embeddings")


def is_tied(config):
    return bool(config.get("weight_tying") or config.get("tie_word_embeddings"))


def block_tensors(config):
    """(our name, shape) of one block's tensors; experts are gate.E, up.E, down.E."""
    _, width, heads, kv_heads, head_dim = sizes_of(config)
    shapes = variants.block_tensors(config, heads, kv_heads, head_dim) | {"input_norm": [width], "mlp_norm": [width], "q_proj": [heads * head_dim, width],
              "k_proj": [kv_heads * head_dim, width], "v_proj": [kv_heads * head_dim, width],
              "o_proj": [width, heads * head_dim]}
    if has_qk_norm(config):
        shapes |= {"q_norm": [head_dim], "k_norm": [head_dim]}
    for name in biases_of(config):
        shapes[name + ".bias"] = [shapes[name][0]]
    mlp = config.get("mlp_hidden_size") or config.get("intermediate_size") or config["expert_intermediate_size"]
    parts = {"gate": [mlp, width], "up": [mlp, width], "down": [width, mlp]}
    if "num_experts" not in config:
        return shapes | parts
    shapes["router"] = [config["num_experts"], width]
    for expert in range(config["num_experts"]):
        shapes |= {f"{name}.{expert}": shape for name, shape in parts.items()}
    return shapes


def file_name(config, layer, name):
    """A block's tensor as the checkpoint names it."""
    part, _, rest = name.partition(".")
    if part in ("bias_k", "bias_v", "bias_out", "relative_bias", "kernel_in", "kernel_out"):
        return (f"model.transformer.blocks.{layer}." if is_olmo(config) else f"model.layers.{layer}.self_attn.") + name
    if is_olmo(config):
        return f"model.transformer.blocks.{layer}.{OLMO_BLOCK[part]}.weight"
    if rest == "bias":
        return f"model.layers.{layer}.{LLAMA_BLOCK[part]}.bias"
    if rest:
        return f"model.layers.{layer}.mlp.experts.{rest}.{part}_proj.weight"
    return f"model.layers.{layer}.{LLAMA_BLOCK[part]}.weight"


def outer_names(config):
    """Names of embedding, last norm and head."""
    if is_olmo(config):
        return "model.transformer.wte.weight", "model.transformer.ln_f.weight", "model.transformer.ff_out.weight"
    return "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"


def random_weights(config, seed, selection_bias=None):
    """Checkpoint names to float32 arrays, large enough that attention is far from uniform and logits differ."""
    random = np.random.RandomState(seed)
    layers, width, *_ = sizes_of(config)
    rows = config["vocab_size"]

    def tensor(name, shape):
        if len(shape) == 1:
            mean = 0 if name.endswith("bias") else 1
            return (mean + 0.3 * random.randn(*shape)).astype(np.float32)
        return (random.randn(*shape) * 1.5 / np.sqrt(shape[-1])).astype(np.float32)

    weights = {}
    for layer in range(layers):
        for name, shape in block_tensors(config).items():
            weights[file_name(config, layer, name)] = tensor(name, shape)
        if selection_bias:
            weights[f"model.layers.{layer}.{selection_bias}"] = tensor("bias", [config["num_experts"]])
    embedding, norm, head = outer_names(config)
    weights[embedding] = random.randn(rows, width).astype(np.float32)
    if not variants.variant_of(config).get("post_norm"):
        weights[norm] = tensor("norm", [width])
    for name, shape in variants.outer_tensors(config, width, positions_of(config)).items():
        weights[name] = random.randn(*shape).astype(np.float32)
    if not is_tied(config):
        weights[head] = tensor("head", [rows, width])
    return weights


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(array.tobytes())


def write_checkpoint(folder, config, weights, tokenizer=False):
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    write_safetensors(os.path.join(folder, "model.safetensors"), weights)
    if tokenizer:
        with open(os.path.join(folder, "tokenizer.json"), "w") as file:
            json.dump(bytes_tokenizer(), file)


# The ids of the tokenizer: the letters a to z, the space (as byte-level BPE spells it), and " a" as one token.
LETTERS = {chr(ord("a") + i): i for i in range(26)} | {" ": 26}
SPACE_A = 27


def bytes_tokenizer():
    vocabulary = {("\u0120" if letter == " " else letter): i for letter, i in LETTERS.items()} | {"\u0120a": SPACE_A}
    special = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True}
               for i, text in ((BOS_ID, "<bos>"), (EOS_ID, "<eos>"), (MASK_ID, "<mask>"))]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": None, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False, "byte_fallback": False,
                      "vocab": vocabulary, "merges": ["\u0120 a"]}}


def encode(text):
    """What the tokenizer makes of a text of small letters and spaces."""
    ids = [LETTERS[letter] for letter in text]
    joined = []
    for i in ids:
        if joined and joined[-1] == LETTERS[" "] and i == LETTERS["a"]:
            joined[-1] = SPACE_A
        else:
            joined.append(i)
    return joined
