#include "measure/row_steps.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>

namespace sinkscope {
namespace {

std::string row_name(std::size_t t) { return fmt::format("last_row_{}", t); }

}  // namespace

bool holds_rows(const std::filesystem::path& file) { return NpzFile(file).contains(row_name(0)); }

RowSteps::RowSteps(const std::filesystem::path& file, const RunShape& run)
    : where_(file.string()), file_(file), states_(read_states(file_, where_)) {
  if (states_.prompt_length == 0)
    throw Error("{}: prompt_length is 0; a row of attention needs a key", where_);
  shape_ = {states_.steps, states_.prompt_length + states_.steps - 1, static_cast<std::size_t>(run.layers),
            static_cast<std::size_t>(run.heads)};
  if (shape_.positions > states_.positions)
    throw Error("{}: states has {} positions, fewer than the prompt's {} and {} tokens take", where_,
                states_.positions, states_.prompt_length, states_.steps);
  for (std::size_t t = 0; t < shape_.steps; ++t) {
    const NpzArray row = file_.array(row_name(t));
    if (row.type != ArrayType::float16 && row.type != ArrayType::float32)
      throw Error("{}: {} holds {}; float16 or float32 is right", where_, row_name(t), name_of(row.type));
    const std::vector<std::int64_t> right{run.layers, run.heads,
                                          static_cast<std::int64_t>(states_.prompt_length + t)};
    if (row.shape != right)
      throw Error("{}: {} has the shape {}; prompt_length and run.json ask for [L,H,n] = {}", where_,
                  row_name(t), shape_text(row.shape), shape_text(right));
  }
}

void RowSteps::read(std::size_t t, Step& step) const {
  const std::size_t keys = states_.prompt_length + t;
  step.shape = shape_;
  step.shape.positions = keys;
  step.number = t;
  const auto first = states_.ids.begin() + static_cast<std::ptrdiff_t>(t * states_.positions);
  step.ids.assign(first, first + static_cast<std::ptrdiff_t>(keys));
  const auto negative = std::find_if(step.ids.begin(), step.ids.end(), [](auto id) { return id < 0; });
  if (negative != step.ids.end())
    throw Error("{}: states holds the id {} among the {} keys of token {}; ids are at least 0", where_,
                *negative, keys, t);
  step.status.assign(keys, TokenStatus::decoded);
  std::fill_n(step.status.begin(), states_.prompt_length, TokenStatus::prompt);
  const auto query = static_cast<std::size_t>(step.status.back());
  step.queries = {};
  step.queries[query] = static_cast<double>(keys);
  const std::vector<float> row = file_.floats(row_name(t));
  step.by_class.assign(status_count * row.size(), 0);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!(row[i] >= 0 && row[i] <= 1.01F))
      throw Error("{}: {} is {} at layer {}, head {}, key {}; attention lies between 0 and 1", where_,
                  row_name(t), row[i], i / keys / shape_.heads, i / keys % shape_.heads, i % keys);
    step.by_class[query * row.size() + i] = row[i] * static_cast<float>(keys);
  }
}

}  // namespace sinkscope
