// `sinkscope forward`: one forward pass over given ids, for parity checks.
#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>
#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/npz.h>

#include <memory>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/prompts.h"

namespace sinkscope {
namespace {

struct ForwardOptions {
  std::string model;
  std::string ids;
  std::string out;
  ModelOptions common;
};

TokenBatch parse_rows(const std::string& text) {
  TokenBatch batch;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::vector<std::int32_t> row =
        parse_ids(std::string_view(text).substr(begin, end - begin), "--ids");
    if (row.empty())
      throw UsageError("--ids \"{}\": every row needs at least one id; rows look like \"1,2,3;4,5,6\"",
                       text.substr(0, 60));
    batch.ids.insert(batch.ids.end(), row.begin(), row.end());
    batch.offsets.push_back(batch.tokens());
    begin = end + 1;
  }
  return batch;
}

void mark_query_classes(TokenBatch& batch, const ModelConfig& config) {
  for (const std::int32_t id : batch.ids)
    batch.query_class.push_back(
        static_cast<std::uint8_t>(config.mask_id == id ? QueryClass::masked : QueryClass::prompt));
}

// [outer, N, inner] with ragged rows -> [B, outer, S, inner], S the longest row; places past a row's end hold
// `fill`.
template <typename T>
std::vector<T> pad_rows(std::span<const T> flat, std::int64_t outer, std::int64_t inner,
                        const TokenBatch& batch, std::int64_t longest, T fill) {
  std::vector<T> padded(static_cast<std::size_t>(batch.sequences() * outer * longest * inner), fill);
  for (std::int64_t b = 0; b < batch.sequences(); ++b)
    for (std::int64_t o = 0; o < outer; ++o)
      std::copy_n(flat.begin() + (o * batch.tokens() + batch.offsets[b]) * inner,
                  (batch.offsets[b + 1] - batch.offsets[b]) * inner,
                  padded.begin() + (b * outer + o) * longest * inner);
  return padded;
}

void write_arrays(const std::string& path, const TokenBatch& batch, const ModelConfig& config,
                  const ForwardResult& result) {
  const std::int64_t rows = batch.sequences();
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < rows; ++b)
    longest = std::max(longest, batch.offsets[b + 1] - batch.offsets[b]);
  const auto floats = [&](const at::Tensor& tensor, std::int64_t outer, std::int64_t inner) {
    const at::Tensor flat = tensor.to(at::kCPU, at::kFloat).contiguous();
    return pad_rows(std::span<const float>(flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())),
                    outer, inner, batch, longest, 0.0F);
  };
  const std::int64_t vocabulary = result.logits.size(1);
  NpzWriter writer(path);
  writer.add("input_ids", {rows, longest},
             pad_rows(std::span<const std::int32_t>(batch.ids), 1, 1, batch, longest, -1));
  writer.add("logits", ArrayType::float32, {rows, longest, vocabulary}, floats(result.logits, 1, vocabulary));
  writer.add("column_sum", ArrayType::float32, {rows, config.layers, config.heads, longest},
             floats(result.observation.column_sum.sum(0), config.layers * config.heads, 1));
  writer.add("hidden_norm", ArrayType::float32, {rows, config.layers + 1, longest},
             floats(result.hidden_norm, config.layers + 1, 1));
  writer.finish();
}

void forward_command(const ForwardOptions& options) {
  TokenBatch batch = parse_rows(options.ids);
  const Placement placement = place(options.common);
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(locate_model(options.model)));
  const ComputeDtype dtype = choose_dtype(options.common, checkpoint->config(), placement.device);
  if (!dtype.note.empty()) note(options.common.quiet, dtype.note);
  mark_query_classes(batch, checkpoint->config());
  const Transformer model = load_model(checkpoint, placement, dtype.type, options.common.quiet);
  ForwardRequest request{.tokens = batch};
  request.capture = Capture::columns;
  request.hidden_norms = true;
  const ForwardResult result = model.forward(request);
  write_arrays(options.out, batch, checkpoint->config(), result);
  if (!at::isfinite(result.logits).all().item<bool>())
    note(false, fmt::format("{}: some logits are not finite (NaN or infinity)", options.out));
}

}  // namespace

void add_forward_command(CLI::App& program) {
  auto options = std::make_shared<ForwardOptions>();
  CLI::App* command =
      program.add_subcommand("forward", "One forward pass: logits, column sums and norms to an .npz");
  OptionTable table(*command);
  command->add_option("MODEL", options->model, "directory, built-in name or Hugging Face id")->required();
  table.option("ids", options->ids, "rows of token ids: \"1,2,3;4,5,6\"; rows may differ in length")
      ->required();
  table.option("out", options->out, "file to write: input_ids, logits, column_sum, hidden_norm")->required();
  declare_model_options(table, options->common);
  command->footer(
      "Where rows are shorter than the longest one, the places past their end hold -1 in input_ids and 0 "
      "elsewhere.");
  command->callback([options] { forward_command(*options); });
}

}  // namespace sinkscope
