"""Runs the built program and this folder's reference on random models: check.py PROGRAM forward|run|score|interventions|ranks|sinks,
or of models with another attention variant-forward|variant-run.

Exit status 1 and a line for each disagreement. The reference follows the published equations in float64 and shares nothing
with the program; what the program does differently on purpose stands in docs/methods.md.
"""

import json
import os
import subprocess
import sys
import tempfile

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded: these matrices are small

import numpy as np

import checkpoints
import likelihoods
import samplers
from transformer import Transformer, window_of
from variants import with_variant


class Check:
    def __init__(self, program, folder):
        self.program, self.folder, self.number = program, folder, 0
        self.cases, self.failures, self.largest = 0, 0, {}

    def path(self):
        self.number += 1
        return os.path.join(self.folder, str(self.number))

    def run(self, *arguments):
        command = [self.program, *map(str, arguments), "--threads", "1", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
        return done.stdout

    def model(self, config, seed=1, selection_bias=None, tokenizer=False):
        folder = self.path()
        weights = checkpoints.random_weights(config, seed, selection_bias)
        checkpoints.write_checkpoint(folder, config, weights, tokenizer)
        return folder, Transformer(config, weights)

    def fail(self, what):
        self.failures += 1
        print("DIFFERENT", what)

    def same(self, what, got, right):
        got, right = np.asarray(got), np.asarray(right)
        equal = got.shape == right.shape and np.array_equal(got, right)
        if not equal:
            self.fail(f"{what}:\n  program   {got.tolist()}\n  reference {right.tolist()}")
        return equal

    def close(self, what, got, right, absolute, relative=0.0):
        got, right = np.asarray(got, float), np.asarray(right, float)
        if got.shape != right.shape or not np.array_equal(np.isnan(got), np.isnan(right)):
            return self.fail(f"{what}: shape {got.shape} for {right.shape}, or numbers in other places")
        off = np.nan_to_num(np.abs(got - right))
        kind = what.split(": ")[-1]
        self.largest[kind] = max(self.largest.get(kind, 0), off.max(initial=0))
        if (off > np.maximum(absolute, relative * np.nan_to_num(np.abs(right)))).any():
            self.fail(f"{what}: off by up to {off.max():.2e}")

    def case(self, name, compare, *arguments):
        """One case; an error in it is a failure of it alone."""
        self.cases += 1
        try:
            compare(self, name, *arguments)
        except (RuntimeError, KeyError, IndexError, ValueError) as error:
            self.fail(f"{name}: {type(error).__name__}: {error}")


def rows_text(rows):
    return ";".join(",".join(map(str, row)) for row in rows)


def random_ids(seed, length):
    return np.random.RandomState(seed).randint(0, checkpoints.IDS - 3, length).tolist()


# forward

def forward_case(check, name, config, lengths, selection_bias=None):
    folder, model = check.model(config, len(name), selection_bias)
    rows = [random_ids(length, length) for length in lengths]
    out = check.path() + ".npz"
    check.run("forward", folder, "--ids", rows_text(rows), "--out", out, "--dtype", "f32")
    got = np.load(out)
    for b, row in enumerate(rows):
        logits, maps, norms = model.forward(row)
        n = len(row)
        check.close(f"{name}, {n} positions: logits", got["logits"][b, :n], logits, 2e-4)
        check.close(f"{name}, {n} positions: column_sum", got["column_sum"][b, :, :, :n], maps.sum(2), 1e-4, 1e-5)
        # Signed similarities make norms of some hundreds, by sums that cancel.
        check.close(f"{name}, {n} positions: hidden_norm", got["hidden_norm"][b, :, :n], norms, 2e-4, 3e-5)


def llama(**changes):
    return checkpoints.llama_config("LlamaForCausalLM", "llama", **changes)


def mistral(**changes):
    return checkpoints.llama_config("MistralForCausalLM", "mistral", **changes)


def qwen2(**changes):
    return checkpoints.llama_config("Qwen2ForCausalLM", "qwen2", **changes)


def qwen3(**changes):
    return checkpoints.llama_config("Qwen3ForCausalLM", "qwen3", **({"head_dim": 12} | changes))


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 128}


def llada_variant(**attention):
    return with_variant(checkpoints.llada_config(n_kv_heads=2, max_sequence_length=80), **attention)


def llama_variant(changes={}, **attention):
    return with_variant(llama(**({"max_position_embeddings": 80} | changes)), **attention)


# Each of them for both families.
VARIANTS = {
    "sigmoid": {"similarity": "sigmoid"},
    "sigmoid, unnormalised": {"similarity": "sigmoid", "normalised": False},
    "sigmoid, p 2": {"similarity": "sigmoid", "p": 2},
    "elu plus one": {"similarity": "elu-plus-one"},
    "elu kernel": {"similarity": "elu-kernel"},
    "linear kernel": {"similarity": "linear-kernel"},
    "mlp kernel": {"similarity": "mlp-kernel"},
    "softmax, p 0.5, scaled": {"p": 0.5, "scale": 0.2},
    "sink token": {"slot": "sink-token"},
    "sink token, everything": {"slot": "sink-token", "scale": 0.5, "value_bias": True, "post_norm": True},
    "sink token, learned": {"slot": "sink-token", "positions": "learned"},
    "sink token, alibi": {"slot": "sink-token", "positions": "alibi"},
    "sink token, relative": {"slot": "sink-token", "positions": "relative"},
    "key value bias": {"slot": "key-value-bias"},
    "key value bias, shared, sigmoid": {"slot": "key-value-bias", "slot_shared": True, "similarity": "sigmoid"},
    "key bias of 3": {"slot": "key-bias", "slot_dims": 3},
    "key bias, first": {"slot": "key-bias", "slot_value": "first", "slot_value_norm": 5},
    "key bias, uniform": {"slot": "key-bias", "slot_value": "uniform", "slot_value_norm": 5},
    "value bias": {"value_bias": True},
    "no positions": {"positions": "none"},
    "learned positions": {"positions": "learned"},
    "sinusoids": {"positions": "sinusoid"},
    "alibi": {"positions": "alibi"},
    "relative": {"positions": "relative"},
    "bucket's number": {"positions": "relative-bucket"},
    "post-norm": {"post_norm": True},
}


def check_variant_forward(check):
    for name, attention in VARIANTS.items():
        check.case(f"LLaDA, {name}", forward_case, llada_variant(**attention), [1, 2, 40])
        check.case(f"Llama, {name}", forward_case, llama_variant(**attention), [1, 2, 40])
    for name, config in [
            ("prefix 5", llama_variant(prefix=5)), ("prefix 5, post-norm", llama_variant(prefix=5, post_norm=True)),
            ("prefix 3, window 4", llama_variant({"sliding_window": 4}, prefix=3)),
            ("prefix 3, window 4, sink token", llama_variant({"sliding_window": 4}, prefix=3, slot="sink-token")),
            ("window 4, key bias", llama_variant({"sliding_window": 4}, slot="key-bias")),
            ("window 4, sink token, one key head", llama_variant({"sliding_window": 4, "num_key_value_heads": 1}, slot="sink-token")),
            ("6 heads, alibi", llama_variant({"num_attention_heads": 6, "head_dim": 8}, positions="alibi"))]:
        check.case(f"Llama, {name}", forward_case, config, [2, 5, 30])


def check_forward(check):
    short = [1, 2, 17, 70]
    for name, config, lengths, *bias in [
            ("Qwen3", qwen3(), short),
            ("Qwen3 with biases", qwen3(attention_bias=True, head_dim=10, num_key_value_heads=1), short),
            ("Qwen3, tied", qwen3(tie_word_embeddings=True, num_key_value_heads=4), [33]),
            ("Mistral, window 5", mistral(sliding_window=5), [3, 5, 6, 41]),
            ("Mistral, window 1", mistral(sliding_window=1), [9]),
            ("Mistral, window of all", mistral(sliding_window=64, head_dim=16), [64, 65]),
            ("Mistral, no window", mistral(sliding_window=None), [31]),
            ("Qwen2, window from layer 1", qwen2(use_sliding_window=True, sliding_window=7, max_window_layers=1), short),
            ("Qwen2, window from layer 0", qwen2(use_sliding_window=True, sliding_window=4, max_window_layers=0), [23]),
            ("Qwen2, window switched off", qwen2(use_sliding_window=False, sliding_window=4, max_window_layers=0,
                                                 tie_word_embeddings=True), [23]),
            ("Llama", llama(num_key_value_heads=1, head_dim=6), short),
            ("Llama, llama3 scaling", llama(rope_scaling=LLAMA3, head_dim=16, rope_theta=500000.0), [11, 300]),
            ("Llama, linear scaling", llama(rope_scaling={"type": "linear", "factor": 2.5}), [69]),
            ("Llama with biases", llama(attention_bias=True, hidden_size=36, num_attention_heads=6), short),
            ("LLaDA", checkpoints.llada_config(n_kv_heads=2, weight_tying=True), short),
            ("Dream", checkpoints.dream_config(num_key_value_heads=1), short),
            ("LLaDA-MoE", checkpoints.moe_config(), short),
            ("LLaDA-MoE, weights of sum 1", checkpoints.moe_config(norm_topk_prob=True, num_experts_per_tok=3), [29]),
            ("LLaDA-MoE, all experts", checkpoints.moe_config(num_experts_per_tok=6), [7]),
            ("LLaDA-MoE with a bias of choice", checkpoints.moe_config(), [37], "mlp.gate.expert_bias"),
            ("LLaDA-MoE with another bias of choice", checkpoints.moe_config(norm_topk_prob=True), [37], "mlp.expert_bias"),
    ]:
        check.case(name, forward_case, config, lengths, *bias)


# run

def option_arguments(options):
    arguments = []
    for name, value in options.items():
        if value is not False and value is not None:
            arguments += ["--" + name.replace("_", "-")] + ([] if value is True else [value])
    return arguments


def run_directory(check, folder, prompts, batch, options):
    out = check.path()
    check.run("run", folder, *[part for p in prompts for part in ("--prompt-ids", ",".join(map(str, p)))],
              *option_arguments(options), "--batch", batch, "--seed", 11, "--run-dir", out,
              "--dtype", "f32", "--array-dtype", "f32")
    return [np.load(os.path.join(out, f"sample_{i:05d}.npz")) for i in range(len(prompts))]


PROMPTS = [random_ids(5, 6), random_ids(6, 1), random_ids(7, 9)]
INFILLED = [random_ids(8, 1), [3, checkpoints.MASK_ID, 4, checkpoints.MASK_ID, 60], random_ids(9, 8)]


def denoising_case(check, name, folder, model, sampler, options, batches):
    runs = {batch: run_directory(check, folder, INFILLED, batch, options) for batch in batches}
    for i, prompt in enumerate(INFILLED):
        right = sampler(model, prompt, 11 + i, checkpoints.MASK_ID, **options)
        for batch, samples in runs.items():
            got, what = samples[i], f"{name} {option_arguments(options)}, sample {i}, batch {batch}"
            if not check.same(f"{what}: states", got["states"], np.stack(right.states)):
                continue
            check.same(f"{what}: proposed", got["proposed"], np.stack(right.proposed))
            check.close(f"{what}: confidence", got["confidence"], np.stack(right.confidence), 1e-4)
            check.close(f"{what}: column_sum", got["column_sum"], np.stack(right.columns), 1e-4, 1e-5)
            if options.get("effect"):
                for kind, right_steps in right.effects.items():
                    check.close(f"{what}: {kind}", got[kind], np.stack(right_steps), 1e-4)
            if options.get("sink_rank") == "own":
                check.same(f"{what}: queries_without_key", got["queries_without_key"],
                           np.stack([r.sum(2, dtype=np.uint16) if r.ndim == 4 else r for r in right.removed]))
            elif options.get("sink_top_k"):
                check.same(f"{what}: masked_keys", got["masked_keys"], np.stack(right.removed))


def autoregressive_case(check, name, config, prompts, options):
    folder, model = check.model(config, 3)
    batches = (1, 3) if options.get("sink_top_k") else (3,)
    runs = {batch: run_directory(check, folder, prompts, batch, options | {"ignore_eos": True}) for batch in batches}
    for i, prompt in enumerate(prompts):
        ids, rows, removals, effects = samplers.autoregressive(model, prompt, seed=11 + i, **options)
        for batch, samples in runs.items():
            got, what = samples[i], f"{name} {option_arguments(options)}, sample {i}, batch {batch}"
            check.same(f"{what}: ids", got["states"][-1], ids)
            for number, kind in enumerate(samplers.EFFECTS if effects else ()):
                check.close(f"{what}: {kind}", got[kind], [effect[number] for effect in effects], 1e-4)
            for step, row in enumerate(rows):
                check.close(f"{what}, token {step}: last_row", got[f"last_row_{step}"], row, 1e-4)
            for step, removed in enumerate(removals, 1):
                check.same(f"{what}, token {step}: masked_keys", got[f"masked_keys_{step}"], removed)


LLADA_RUNS = [
    {}, {"threshold": 0.3}, {"threshold": 0.3, "sink_top_k": 2},
    *[{"cache": cache} | more for cache in ("prefix", "dual")
      for more in ({}, {"sink_top_k": 2}, {"threshold": 0.3}, {"threshold": 0.25, "temperature": 0.7, "cfg": 1.5},
                   {"remasking": "random"}, {"cfg": 0.5, "sink_top_k": 2, "forbid_mask": True})]]

DREAM_RUNS = [
    {}, {"alg": "entropy", "sink_top_k": 2}, {"temperature": 0.6}, {"alg": "topk_margin", "temperature": 0.9, "top_p": 0.8},
    {"alg": "maskgit_plus", "temperature": 1.2, "top_k": 5, "alg_temp": 0.3},
    {"alg": "entropy", "temperature": 0.8, "top_p": 0.7, "top_k": 6, "alg_temp": 0.1, "confidence_from": "untempered"},
    {"alg": "topk_margin", "temperature": 0.5, "top_k": 7, "confidence_from": "untempered"},
    {"alg": "maskgit_plus", "threshold": 0.4}, {"alg": "maskgit_plus", "threshold": 0.4, "temperature": 0.5, "sink_top_k": 2},
    *[{"cache": cache} | more for cache in ("prefix", "dual")
      for more in ({"alg": "entropy"}, {"alg": "entropy", "sink_top_k": 2}, {"alg": "maskgit_plus", "threshold": 0.4},
                   {"alg": "entropy", "temperature": 0.7, "top_p": 0.9, "alg_temp": 0.2},
                   {"alg": "maskgit_plus", "threshold": 0.3, "temperature": 0.4, "sink_top_k": 2})]]


INTERVENTIONS = [
    {"sink_control": "random"}, {"sink_control": "bottom"}, {"sink_control": "matched"}, {"sink_positions": "prompt,masked"},
    {"sink_layers": "1", "sink_heads": "0,2-3"}, {"sink_steps": "2-3,6"},
    {"sink_control": "random", "sink_positions": "decoded,masked", "sink_steps": "1-5"},
    {"sink_action": "scale", "sink_eta": 0.25}, {"sink_action": "value-zero"}, {"sink_action": "value-mean"}]


# Of ranks own and last in diffusion models, with each of these.
RANKED = INTERVENTIONS + [
    {"sink_from": "masked"}, {"exclude_self": True, "sink_control": "random"}, {"exclude_self": True, "sink_rule": "topk"},
    {"mask_sink_ratio": 0.5}, {"epsilon": 2.0}, {"epsilon": 3.0, "sink_scale": "percent"}, {"epsilon": 0.02, "sink_scale": "mean"},
    {"sink_reset_at_block": True}, {"sink_control": "random", "cfg": 0.5, "temperature": 0.7},
    {"sink_control": "matched", "cache": "dual"}, {"sink_action": "value-mean", "cache": "prefix", "cfg": 0.5},
    {"sink_control": "bottom", "sink_positions": "masked", "cache": "prefix"},
    {"sink_action": "scale", "sink_eta": 3, "sink_from": "masked"}, {"sink_from": "masked", "sink_control": "bottom"}]


LENGTHS = {"gen_len": 16, "steps": 8, "block_len": 8, "sink_top_k": 3}


def check_ranks(check):
    lengths = LENGTHS
    folder, model = check.model(checkpoints.llada_config(n_kv_heads=2), 2)
    dream_folder, dream = check.model(checkpoints.dream_config(), 2)
    for rank in ("own", "last"):
        for number, options in enumerate(RANKED if rank == "own" else RANKED[::3]):
            check.case(f"LLaDA, rank {rank}", denoising_case, folder, model, samplers.llada,
                       lengths | {"sink_rank": rank} | options, batches_of(number))
        for options in ({"sink_control": "random"}, {"cache": "dual"}):
            check.case(f"Dream, rank {rank}", denoising_case, dream_folder, dream, samplers.dream,
                       lengths | {"alg": "entropy", "sink_rank": rank} | options, (1, 3))
    for rank in ("usual", "own"):
        for options in ({}, {"cfg": 0.5, "forbid_mask": True, "sink_action": "scale", "sink_eta": 0.5},
                        {"cache": "dual", "sink_control": "random"}, {"cache": "prefix", "sink_layers": "1", "temperature": 0.7}):
            check.case(f"LLaDA, rank {rank}, effect", denoising_case, folder, model, samplers.llada,
                       lengths | {"sink_rank": rank, "effect": True} | options, (1, 3))
        for options in ({"alg": "entropy", "forbid_mask": True}, {}, {"alg": "entropy", "cache": "prefix"},
                        {"alg": "maskgit_plus", "threshold": 0.4}):
            check.case(f"Dream, rank {rank}, effect", denoising_case, dream_folder, dream, samplers.dream,
                       lengths | {"sink_rank": rank, "effect": True} | options, (3,))
    for variant in ({"slot": "key-value-bias"}, {"similarity": "sigmoid", "normalised": False}, {"slot": "sink-token"}):
        other_folder, other = check.model(llada_variant(**variant), 2)
        for options in ({}, {"sink_action": "scale", "sink_eta": 0.25}, {"sink_action": "value-mean"}, {"sink_from": "masked"}):
            check.case(f"LLaDA, {variant}, rank own", denoising_case, other_folder, other, samplers.llada,
                       lengths | {"sink_rank": "own"} | options, (3,))


def check_interventions(check):
    lengths = LENGTHS
    folder, model = check.model(checkpoints.llada_config(), 2)
    for number, options in enumerate(INTERVENTIONS + [
            {"sink_reset_at_block": True}, {"sink_control": "random", "cfg": 0.5, "temperature": 0.7},
            {"sink_control": "matched", "cache": "dual"}, {"sink_action": "value-mean", "cache": "prefix", "cfg": 0.5},
            {"sink_action": "scale", "sink_eta": 3}]):
        check.case("LLaDA", denoising_case, folder, model, samplers.llada, lengths | options, batches_of(number))
    folder, model = check.model(checkpoints.dream_config(), 2)
    check.case("Dream", denoising_case, folder, model, samplers.dream,
               lengths | {"alg": "entropy", "sink_control": "random"}, (1, 3))
    for name, config in [("Llama", llama()), ("Mistral, window 7", mistral(sliding_window=7))]:
        for options in INTERVENTIONS + [{"sink_rank": "last"}, {"sink_rank": "columns"}, {"sink_rank": "visible"},
                                        {"sink_rank": "visible", "sink_control": "random"}, {"effect": True},
                                        {"effect": True, "sink_action": "value-mean", "sink_rank": "columns"}]:
            check.case(name, autoregressive_case, config, PROMPTS, {"gen_len": 9, "sink_top_k": 2} | options)
    for variant in ({"slot": "key-value-bias"}, {"similarity": "sigmoid", "normalised": False}):
        folder, model = check.model(llada_variant(**variant), 2)
        for options in ({"sink_action": "scale", "sink_eta": 0.25}, {"sink_action": "value-mean"}):
            check.case(f"LLaDA, {variant}", denoising_case, folder, model, samplers.llada, lengths | options, (3,))


def batches_of(number):
    """Every third case also runs sample by sample."""
    return (1, 3) if number % 3 == 0 else (3,)


def check_run(check):
    lengths = {"gen_len": 16, "steps": 8, "block_len": 8}
    folder, model = check.model(checkpoints.llada_config(), 2)
    for number, options in enumerate(LLADA_RUNS):
        check.case("LLaDA", denoising_case, folder, model, samplers.llada, lengths | options, batches_of(number))
    folder, model = check.model(checkpoints.dream_config(), 2)
    for number, options in enumerate(DREAM_RUNS):
        check.case("Dream", denoising_case, folder, model, samplers.dream, lengths | options, batches_of(number))
    for name, config in [("Llama", llama()), ("Mistral, window 7", mistral(sliding_window=7)), ("Qwen3", qwen3()),
                         ("Qwen2, window from layer 1", qwen2(use_sliding_window=True, sliding_window=5, max_window_layers=1))]:
        for options in ({"gen_len": 9}, {"gen_len": 9, "sink_top_k": 2}):
            check.case(name, autoregressive_case, config, PROMPTS, options)


# Caches and interventions where a row's keys are not all that it sees, or not of sum 1.
def check_variant_run(check):
    lengths = {"gen_len": 16, "steps": 8, "block_len": 8}
    for name, attention in [("sink token", {"slot": "sink-token"}), ("relative", {"positions": "relative", "value_bias": True}),
                            ("sink token, post-norm, learned", {"slot": "sink-token", "post_norm": True, "positions": "learned"}),
                            ("sigmoid, key value bias", {"similarity": "sigmoid", "slot": "key-value-bias"})]:
        folder, model = check.model(llada_variant(**attention), 2)
        for options in ({}, {"sink_top_k": 2}, {"cache": "prefix", "sink_top_k": 2}, {"cache": "dual"},
                        {"cache": "dual", "sink_top_k": 2, "cfg": 0.5}):
            check.case(f"LLaDA, {name}", denoising_case, folder, model, samplers.llada, lengths | options, (3,))
    in_prefix = [random_ids(5, 6), random_ids(6, 8), random_ids(7, 13)]  # one ends with the prefix of 6
    for name, config, prompts in [
            ("sink token", llama_variant(slot="sink-token"), PROMPTS),
            ("sink token, window 4, alibi", llama_variant({"sliding_window": 4}, slot="sink-token", positions="alibi"), PROMPTS),
            ("key bias, unnormalised sigmoid", llama_variant(slot="key-bias", similarity="sigmoid", normalised=False), PROMPTS),
            ("relative", llama_variant(positions="relative"), PROMPTS),
            ("sinusoids, elu plus one", llama_variant(positions="sinusoid", similarity="elu-plus-one"), PROMPTS),
            ("learned, post-norm", llama_variant(positions="learned", post_norm=True), PROMPTS),
            ("prefix 6", llama_variant(prefix=6), in_prefix),
            ("prefix 6, window 3, value bias", llama_variant({"sliding_window": 3}, prefix=6, value_bias=True), in_prefix)]:
        for options in ({"gen_len": 9}, {"gen_len": 9, "sink_top_k": 2}, {"gen_len": 9, "sink_top_k": 2, "sink_rank": "columns"}):
            check.case(f"Llama, {name}", autoregressive_case, config, prompts, options)


# score

PAIRS = [("bcd ", "a xyz"), ("the cat sat on", " a mat"), ("q", " a"), ("", "abc"), ("a b", "c")]


def requests_of(pairs, with_end=False):
    """(prefix, target) ids: the spaces at a context's end belong to the continuation."""
    for context, continuation in pairs:
        kept = context.rstrip()
        prefix, whole = checkpoints.encode(kept), checkpoints.encode(context + continuation)
        yield whole[:len(prefix)], whole[len(prefix):] + ([checkpoints.EOS_ID] if with_end else [])


def scores(check, folder, pairs, *options):
    file = check.path() + ".jsonl"
    with open(file, "w") as lines:
        for context, continuation in pairs:
            lines.write(json.dumps({"context": context, "continuation": continuation}) + "\n")
    return [json.loads(line) for line in
            check.run("score", folder, "--pairs", file, "--dtype", "f32", "--seed", 77, *options).splitlines()]


def near(check, what, got, right):
    check.close(f"{what}: loglikelihood", [line["loglikelihood"] for line in got], right, 2e-4, 1e-5)


def llada_score(check, name, options, config=checkpoints.llada_config()):
    folder, model = check.model(config, 4, tokenizer=True)
    arguments = [part for key, value in options.items() for part in ("--" + key.replace("_", "-"), value)]
    got = scores(check, folder, PAIRS, *arguments, "--check-greedy")
    requests = list(requests_of(PAIRS))
    near(check, f"{name} {options}", got, [
        likelihoods.llada(model, prefix, target, 77 + i, checkpoints.MASK_ID, **options)
        for i, (prefix, target) in enumerate(requests)])
    check.same(f"{name} {options}: greedy", [line["greedy"] for line in got], [
        likelihoods.llada_greedy(model, prefix, target, checkpoints.MASK_ID, options.get("cfg", 0))
        for prefix, target in requests])


def dream_score(check, name):
    folder, model = check.model(checkpoints.dream_config(), 5, tokenizer=True)
    requests = list(requests_of(PAIRS, with_end=True))
    for mc_num, batch in ((8, 4), (6, 6), (2, 1)):
        for log_type in ("ftb", "btf", "union"):
            got = scores(check, folder, PAIRS, "--mc-num", mc_num, "--batch", batch, "--log-type", log_type, "--eps", 0.05)
            near(check, f"{name} {log_type} {mc_num}/{batch}", got, [
                likelihoods.dream_mc(model, prefix, target, 77 + i, checkpoints.MASK_ID, mc_num, batch, log_type, 0.05)
                for i, (prefix, target) in enumerate(requests)])
    for kind in ("ar_ftb", "ar_btf"):
        near(check, f"{name} {kind}", scores(check, folder, PAIRS, "--nll-type", kind), [
            likelihoods.dream_chain(model, prefix, target, checkpoints.MASK_ID, kind == "ar_ftb")
            for prefix, target in requests])


def autoregressive_score(check, name, config):
    folder, model = check.model(config, 6, tokenizer=True)
    requests = [(prefix or [checkpoints.BOS_ID], target) for prefix, target in requests_of(PAIRS)]
    right = [likelihoods.autoregressive(model, prefix, target) for prefix, target in requests]
    for batch in (1, 3):
        got = scores(check, folder, PAIRS, "--batch", batch)
        near(check, f"{name}, batch {batch}", got, [value for value, _ in right])
        check.same(f"{name}, batch {batch}: greedy", [line["greedy"] for line in got], [greedy for _, greedy in right])


def check_score(check):
    for options in ({"mc_num": 8, "batch": 4}, {"mc_num": 6, "batch": 6, "cfg": 0.5}, {"mc_num": 3, "batch": 1, "cfg": 2.0}):
        check.case("LLaDA", llada_score, options)
    check.case("Dream", dream_score)
    check.case("Llama", autoregressive_score, llama())
    check.case("Mistral, window 4", autoregressive_score, mistral(sliding_window=4))
    check.case("Llama, sink token, learned", autoregressive_score, llama_variant(slot="sink-token", positions="learned"))
    check.case("LLaDA, sink token", llada_score, {"mc_num": 6, "batch": 3, "cfg": 0.5}, llada_variant(slot="sink-token"))


# measure --ar

def ratios(norms, position):
    return norms[:, position] / np.delete(norms, position, 1).mean(1)


def split_of_scores(model, seen, length, position):
    """Means over visible (query, key) pairs of cosine and product of norms, [L, H] each: of one key and of the others."""
    own, others = [], []
    for layer, (q, k, _) in enumerate(seen):
        k = np.repeat(k, model.heads // model.kv_heads, 1)
        window, prefix = window_of(model.config, layer), model.variant.get("prefix", 0)
        distance = np.subtract.outer(np.arange(length), np.arange(length))
        visible = (distance >= 0) & ((distance < window) if window else True) | (np.arange(length) < prefix)
        products = np.einsum("ih,jh->hij", np.linalg.norm(q, axis=-1), np.linalg.norm(k, axis=-1))
        cosines = np.einsum("ihd,jhd->hij", q, k) / products
        this = np.zeros_like(visible)
        this[:, position] = True
        for means, pairs in ((own, visible & this), (others, visible & ~this)):
            means.append([[c[pairs].mean() for c in cosines], [p[pairs].mean() for p in products]])
    return np.array(own), np.array(others)  # [L, 2, H]


def sinks_case(check, name, config, length=20, position=0, epsilon=0.09):
    folder, model = check.model(config, 7, tokenizer=True)
    random = np.random.RandomState(len(name))
    texts = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz "), length * 2)) for _ in range(5)] + ["bc"]
    file = check.path() + ".jsonl"
    with open(file, "w") as lines:
        lines.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    got = json.loads(check.run("measure", "--ar", folder, "--text", file, "--length", length, "--position", position,
                               "--epsilon", epsilon, "--dtype", "f32", "--json"))
    check.same(f"{name}: samples", [got["samples"], got["left_out"]], [5, 1])
    samples = []
    for text in texts[:5]:
        model.seen = []
        _, maps, norms = model.forward(checkpoints.encode(text)[:length])
        alpha = maps.sum(2) / (length - np.arange(length))
        keys = np.array([np.linalg.norm(k, axis=-1).mean(1) for _, k, _ in model.seen])
        values = np.array([np.linalg.norm(v, axis=-1).mean(1) for _, _, v in model.seen])
        slot = 1 - maps.sum((2, 3)) / length
        samples.append((alpha, slot, norms, keys, values, *split_of_scores(model, model.seen, length, position)))
    alpha, slot, norms, keys, values, own, others = (np.array(part) for part in zip(*samples))
    rates = 100 * (alpha > epsilon).mean((1, 2))
    for field, right in [("sink_rate", rates.mean(0)), ("standard_error", rates.std(0, ddof=1) / np.sqrt(5)),
                         ("alpha", alpha.mean((0, 1, 2)))]:
        check.close(f"{name}: {field} of positions", [sink[field] for sink in got["sinks"]], right, 1e-5)
    for field, right in [
            ("alpha", alpha.mean(0)[:, :, position]), ("sink_rate", 100 * (alpha > epsilon).mean(0)[:, :, position]),
            ("hidden_norm", norms.mean(0)), ("key_norm", keys.mean(0)), ("value_norm", values.mean(0)),
            ("massive_ratio", np.mean([ratios(n, position) for n in norms], 0)),
            ("key_ratio", np.mean([ratios(n, position) for n in keys], 0)),
            ("value_ratio", np.mean([ratios(n, position) for n in values], 0))]:
        check.close(f"{name}: {field}", got[field], right, 2e-4, 3e-5)
    if model.variant.get("similarity") in ("elu-kernel", "mlp-kernel"):
        check.same(f"{name}: query_key", [got["query_key"]], [None])
    else:
        for number, field in enumerate(("cosine", "norm_product")):
            check.close(f"{name}: {field}", got["query_key"][field], own.mean(0)[:, number], 2e-4, 3e-5)
            check.close(f"{name}: other {field}", got["query_key"]["other_" + field], others.mean(0)[:, number], 2e-4, 3e-5)
    if "slot" in model.variant:
        check.close(f"{name}: slot", [got["slot"]["alpha"], got["slot"]["sink_rate"]],
                    [slot.mean(), 100 * (slot > epsilon).mean()], 1e-5)
    else:
        check.same(f"{name}: slot", [got["slot"]], [None])


def check_sinks(check):
    for name, config in [("Llama", llama()), ("Mistral, window 5", mistral(sliding_window=5)), ("Qwen3", qwen3()),
                         ("Qwen2, window from layer 1", qwen2(use_sliding_window=True, sliding_window=7, max_window_layers=1))]:
        check.case(name, sinks_case, config)
    check.case("Llama, position 3", sinks_case, llama(num_key_value_heads=1), 17, 3, 0.06)
    for name, attention in VARIANTS.items():
        check.case(f"Llama, {name}", sinks_case, llama_variant(**attention))
    check.case("Llama, prefix 5", sinks_case, llama_variant(prefix=5), 20, 2)
    check.case("Llama, prefix 3, window 4", sinks_case, llama_variant({"sliding_window": 4}, prefix=3), 20, 1)


def main():
    program, what = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        check = Check(program, folder)
        {"forward": check_forward, "run": check_run, "score": check_score,
         "variant-forward": check_variant_forward, "variant-run": check_variant_run, "interventions": check_interventions,
         "ranks": check_ranks, "sinks": check_sinks}[what](check)
    differences = ", ".join(f"{kind} {off:.1e}" for kind, off in check.largest.items())
    print(f"{check.cases} cases, {check.failures} differences; largest distances: {differences}")
    return check.failures > 0


if __name__ == "__main__":
    sys.exit(main())
