// A folder with a tokenizer of bytes, texts and a config: everything a small training needs.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/temporary_folder.h"
#include "text/new_tokenizer.h"
#include "train/train_config.h"

namespace sinkscope {

struct SmallRun {
  testing::TemporaryFolder folder;
  nlohmann::json config = {{"objective", "masked-diffusion"},
                           {"model", {{"layers", 2}, {"heads", 2}, {"width", 16}, {"mlp_width", 24}}},
                           {"tokenizer", "tokenizer"},
                           {"data", {{"files", {"train.jsonl"}}}},
                           {"context", 32},
                           {"batch", 4},
                           {"steps", 12},
                           {"optimizer", {{"learning_rate", 0.01}, {"warmup", 3}}},
                           {"log_every", 3},
                           {"checkpoint_every", 4},
                           {"probe", {{"every", 6}, {"samples", 4}, {"positions", 8}}}};

  SmallRun() {
    std::filesystem::create_directory(folder / "tokenizer");
    const NewTokenizer tokenizer{
        {.bos = "<b>", .eos = "<e>", .pad = "<e>", .mask = "<m>", .others = {}}, split_pattern("qwen2"), {}};
    testing::write_file(folder / "tokenizer/tokenizer.json", tokenizer_json(tokenizer));
    testing::write_file(folder / "tokenizer/tokenizer_config.json", tokenizer_config_json(tokenizer));
    std::string lines;
    for (int i = 0; i < 40; ++i)
      lines += i % 2 == 0 ? fmt::format(R"({{"prompt": "{} + {} =", "answer": "{}"}})", i, i, 2 * i) + "\n"
                          : fmt::format(R"({{"text": "number {} is odd"}})", i) + "\n";
    testing::write_file(folder / "train.jsonl", lines);
  }

  std::filesystem::path run() const { return folder / "run"; }
  std::filesystem::path config_file() const {
    testing::write_file(folder / "config.json", config.dump());
    return folder / "config.json";
  }
  TrainConfig read() const { return read_train_config(config_file()); }
};

}  // namespace sinkscope
