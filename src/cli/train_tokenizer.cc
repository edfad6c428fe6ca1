// `sinkscope train-tokenizer`: byte-level BPE learnt from text files.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "base/new_folder.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/threads.h"
#include "text/new_tokenizer.h"
#include "text/vocabulary.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct TrainTokenizerOptions {
  std::vector<std::string> files;
  std::int64_t vocab_size = 0;
  std::string out;
  std::int64_t min_frequency = 2;
  std::string pattern = "qwen2";
  // LLaDA's names: the chat template, the mask and the end of a turn are known by them.
  std::string bos = "<|startoftext|>";
  std::string eos = "<|endoftext|>";
  std::optional<std::string> pad;
  std::string mask = "<|mdm_mask|>";
  std::vector<std::string> special_tokens;
  std::optional<int> threads;
  bool json = false;
  bool quiet = false;
};

// What the options ask for, checked.
struct TokenizerPlan {
  SpecialTokens special;
  std::string pattern;
  std::size_t fixed = 0;  // special tokens and bytes
  std::size_t vocab_size = 0;
  int threads = 1;
};

SpecialTokens special_tokens(const TrainTokenizerOptions& options) {
  SpecialTokens special{.bos = options.bos,
                        .eos = options.eos,
                        .pad = options.pad.value_or(options.eos),
                        .mask = options.mask,
                        .others = options.special_tokens};
  if (special.others.empty()) special.others = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
  return special;
}

TokenizerPlan resolve(const TrainTokenizerOptions& options) {
  if (options.out.empty()) throw UsageError("--out is empty; it names the folder to make");
  if (options.min_frequency < 1)
    throw UsageError("--min-frequency is {}; it must be at least 1", options.min_frequency);
  TokenizerPlan plan{.special = special_tokens(options), .pattern = split_pattern(options.pattern)};
  const std::size_t special = listed_tokens(plan.special).size();
  plan.fixed = special + 256;
  constexpr std::int64_t most = std::int64_t{max_token_id} + 1;
  if (options.vocab_size < static_cast<std::int64_t>(plan.fixed) || options.vocab_size > most)
    throw UsageError("--vocab-size is {}; it must be from {} (256 bytes and {} special tokens) to {}",
                     options.vocab_size, plan.fixed, special, most);
  plan.vocab_size = static_cast<std::size_t>(options.vocab_size);
  plan.threads = options.threads.value_or(default_threads());
  use_threads(plan.threads);
  refuse_existing(options.out);
  return plan;
}

WordCounts count(const TrainTokenizerOptions& options, const TokenizerPlan& plan) {
  Progress bar("counting words", options.quiet);
  return count_words({options.files.begin(), options.files.end()},
                     {.pattern = Regex(plan.pattern, "--pattern"),
                      .cut_out = listed_tokens(plan.special),
                      .threads = plan.threads,
                      .progress = [&](double share) { bar.show(share, ""); }});
}

LearnedBpe learn(const TrainTokenizerOptions& options, const TokenizerPlan& plan, const WordCounts& counts) {
  Progress bar("merging", options.quiet);
  const std::size_t most = plan.vocab_size - plan.fixed;
  return train_bpe(counts.words,
                   {.most_merges = most,
                    .min_frequency = static_cast<std::uint64_t>(options.min_frequency),
                    .progress = [&](double share) { bar.show(share, fmt::format("of {} merges", most)); }});
}

void write(const NewTokenizer& tokenizer, const std::string& out) {
  NewFolder folder(out);
  write_file_atomically(folder.path() / "tokenizer.json", tokenizer_json(tokenizer));
  write_file_atomically(folder.path() / "tokenizer_config.json", tokenizer_config_json(tokenizer));
  folder.finish();
}

OrderedJson special_ids_of(const SpecialTokens& special) {
  const std::vector<std::string> listed = listed_tokens(special);
  auto result = OrderedJson::object();
  const auto add = [&](const char* role, const std::string& token) {
    const auto found = std::find(listed.begin(), listed.end(), token);
    result[role] = found == listed.end()
                       ? OrderedJson(nullptr)
                       : OrderedJson{{"id", std::distance(listed.begin(), found)}, {"text", token}};
  };
  add("mask", special.mask);
  add("eos", special.eos);
  add("pad", special.pad);
  add("bos", special.bos);
  return result;
}

double bytes_per_token(const WordCounts& counts, const LearnedBpe& learned) {
  return static_cast<double>(counts.bytes) / static_cast<double>(std::max<std::uint64_t>(1, learned.tokens));
}

void report(const TrainTokenizerOptions& options, const NewTokenizer& tokenizer, const WordCounts& counts,
            const LearnedBpe& learned, double seconds) {
  const std::size_t size = tokenizer.size(), merges = tokenizer.merges.size();
  if (static_cast<std::int64_t>(size) < options.vocab_size)
    note(options.quiet,
         fmt::format("only {} of {} tokens: after {} merges no pair stands {} times in the text any more",
                     size, options.vocab_size, merges, options.min_frequency));
  note(options.quiet,
       fmt::format("{}: {} tokens ({} special, 256 bytes, {} merges) from {:.1f} MB, {} different words, "
                   "{:.2f} bytes a token, {:.1f} s",
                   options.out, size, size - 256 - merges, merges, static_cast<double>(counts.bytes) * 1e-6,
                   counts.words.size(), bytes_per_token(counts, learned), seconds));
  if (!options.json) return;
  print_line(json_line(OrderedJson{{"directory", options.out},
                                   {"vocab_size", size},
                                   {"merges", merges},
                                   {"special_tokens", special_ids_of(tokenizer.special)},
                                   {"bytes", counts.bytes},
                                   {"words", counts.words.size()},
                                   {"tokens", learned.tokens},
                                   {"seconds", seconds}}));
}

void train_tokenizer_command(const TrainTokenizerOptions& options) {
  const TokenizerPlan plan = resolve(options);
  const Progress clock("", true);
  const WordCounts counts = count(options, plan);
  const LearnedBpe learned = learn(options, plan, counts);
  const NewTokenizer tokenizer{plan.special, plan.pattern, learned.merges};
  write(tokenizer, options.out);
  report(options, tokenizer, counts, learned, clock.elapsed());
}

std::string pattern_names() {
  std::string names;
  for (const NamedPattern& pattern : split_patterns()) names += std::string(pattern.name) + ", ";
  return names;
}

}  // namespace

void add_train_tokenizer_command(CLI::App& program) {
  auto options = std::make_shared<TrainTokenizerOptions>();
  CLI::App* command = program.add_subcommand("train-tokenizer", "Byte-level BPE learnt from text files");
  OptionTable table(*command);
  command
      ->add_option("FILES", options->files,
                   "plain text, or .jsonl with `text`, or with `prompt` (or `question`) and `answer`")
      ->required();
  table.option("vocab-size", options->vocab_size, "tokens, special ones and the 256 bytes included")
      ->required()
      ->type_name("N")
      ->default_str("");
  table.option("out", options->out, "folder to make; it must not exist")->required();
  table.option("min-frequency", options->min_frequency, "times a pair must stand in the text to be merged");
  table.option("pattern", options->pattern,
               "how texts are cut into words: " + pattern_names() + "or a regular expression");
  table.option("bos", options->bos, "begin token; empty: none");
  table.option("eos", options->eos, "end token; empty: none");
  table.option("pad", options->pad, "padding token; empty: none [the end token]")->type_name("TEXT");
  table.option("mask", options->mask, "mask token; empty: none");
  table
      .repeatable("special-tokens", options->special_tokens,
                  "a further special token; repeatable; in place of those of chats, an empty one for none "
                  "[<|start_header_id|> <|end_header_id|> <|eot_id|>]")
      ->type_name("TEXT");
  table.option("threads", options->threads, "CPU threads; the result does not depend on it [physical cores]")
      ->type_name("N");
  table.flag("json", options->json, "what was made as one JSON object");
  table.flag("quiet", options->quiet, "nothing on stderr");
  command->footer(
      "Ids: the special tokens, the bytes, the merges in order. Of pairs that stand equally often the one "
      "with "
      "the lower ids is merged first. The folder's tokenizer.json is read by Hugging Face's libraries too.");
  command->callback([options] { train_tokenizer_command(*options); });
}

}  // namespace sinkscope
