// Loading and encoding, over real tokenizers and English text when they are at hand, else over generated
// ones.
#include <benchmark/benchmark.h>
#include <sinkscope/tokenizer.h>

#include <filesystem>
#include <string>

#include "base/files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

const fs::path shared = SINKSCOPE_SHARED_DIR;

// A folder under shared/, or the test data's own tokenizer.
Tokenizer load_or_small(const std::string& folder, benchmark::State& state) {
  if (fs::exists(shared / folder / "tokenizer.json")) return Tokenizer::load(shared / folder);
  state.SetLabel("small tokenizer of the test data");
  const fs::path small = fs::path(SINKSCOPE_SOURCE_DIR) / "tests/data/tokenizers/byte_level.json";
  return Tokenizer::parse(read_file(small), small.string());
}

// One million bytes of English.
std::string english() {
  const fs::path corpus = shared / "data/corpus/tinyshakespeare.txt";
  if (fs::exists(corpus)) return read_file(corpus).substr(0, 1'000'000);
  std::string text;
  for (unsigned i = 0; text.size() < 1'000'000; ++i)
    text +=
        "The " + std::to_string(i * 2654435761U % 1000) + " farmers' horses went well-fed; didn't they?\n";
  return text;
}

void encode_text(benchmark::State& state, const std::string& folder, const std::string& text) {
  const Tokenizer tokenizer = load_or_small(folder, state);
  std::size_t ids = 0;
  for (auto _ : state) {
    ids = tokenizer.encode(text).size();
    benchmark::DoNotOptimize(ids);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
  state.counters["ids"] = static_cast<double>(ids);
}

void encode_english(benchmark::State& state, const std::string& folder) {
  encode_text(state, folder, english());
}

void encode_run(benchmark::State& state, const std::string& folder, char character) {
  encode_text(state, folder, std::string(static_cast<std::size_t>(state.range(0)), character));
  state.SetComplexityN(state.range(0));
}

void load(benchmark::State& state, const std::string& folder) {
  for (auto _ : state) {
    const Tokenizer tokenizer = load_or_small(folder, state);
    benchmark::DoNotOptimize(tokenizer.size());
  }
}

void decode_english(benchmark::State& state, const std::string& folder) {
  const Tokenizer tokenizer = load_or_small(folder, state);
  const std::string text = english();
  const auto ids = tokenizer.encode(text);
  for (auto _ : state) {
    std::string decoded = tokenizer.decode(ids);
    benchmark::DoNotOptimize(decoded);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}

BENCHMARK_CAPTURE(load, qwen3, "tokenizers/qwen3")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load, llama3_1, "tokenizers/llama3_1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode_english, qwen3, "tokenizers/qwen3")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode_english, llama3_1, "tokenizers/llama3_1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode_english, llada_style, "tokenizers/llada-style")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode_english, sentencepiece, "models/stories260k")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_english, qwen3, "tokenizers/qwen3")->Unit(benchmark::kMillisecond);

#define SINKSCOPE_RUN_OF(name, character)                            \
  BENCHMARK_CAPTURE(encode_run, name, "tokenizers/qwen3", character) \
      ->Unit(benchmark::kMillisecond)                                \
      ->RangeMultiplier(4)                                           \
      ->Range(1 << 16, 1 << 20)                                      \
      ->Complexity(benchmark::oNLogN)
SINKSCOPE_RUN_OF(letters, 'a');
SINKSCOPE_RUN_OF(spaces, ' ');
SINKSCOPE_RUN_OF(newlines, '\n');

}  // namespace
}  // namespace sinkscope
