#include "checkpoint/tensor_check.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "checkpoint/message.h"

namespace sinkscope {
namespace {

bool is_weight_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// Names that belong to a feature of the architecture nobody has switched on in config.json.
struct Telltale {
  std::string_view part;
  std::string_view meaning;
};
constexpr Telltale telltales[] = {
    {".q_norm.", "query and key norms"},  {".k_norm.", "query and key norms"},
    {".wpe.", "learned positions"},       {".att_proj.", "fused sequential blocks"},
    {".experts.", "mixtures of experts"}, {".emb_norm.", "norms after the embedding"},
    {".block_groups.", "grouped blocks"}, {".bias", "biases"},
    {"weight_scale", "quantised weights"}};

std::string meaning_of(const std::vector<std::string>& names) {
  for (const Telltale& telltale : telltales)
    for (const std::string& name : names)
      if (name.find(telltale.part) != std::string::npos)
        return fmt::format(" (a sign of {}, which are not supported here)", telltale.meaning);
  return "";
}

std::string tensors_text(std::size_t count) {
  return count == 1 ? "1 tensor" : fmt::format("{} tensors", count);
}

void check_names(const std::vector<ExpectedTensor>& expected, const TensorMap& tensors,
                 const std::string& checkpoint) {
  std::set<std::string_view> known;
  std::vector<std::string> missing;
  for (const ExpectedTensor& weight : expected) {
    known.insert(weight.name);
    if (!tensors.contains(weight.name)) missing.push_back(weight.name);
  }
  std::vector<std::string> surplus;
  for (const auto& [name, view] : tensors)
    if (!known.contains(name)) surplus.push_back(name);
  if (missing.empty() && surplus.empty()) return;

  const std::string meaning = meaning_of(surplus);
  for (std::string& name : surplus) name = in_quotes(name);
  std::string what;
  if (!missing.empty()) what = fmt::format("lacks {}: {}", tensors_text(missing.size()), listed(missing));
  if (!surplus.empty())
    what += fmt::format("{}has {} that config.json does not account for: {}{}", what.empty() ? "" : "; it ",
                        tensors_text(surplus.size()), listed(surplus), meaning);
  throw Error("{} {}", checkpoint, what);
}

}  // namespace

void check_tensors(const std::vector<ExpectedTensor>& expected, const TensorMap& tensors,
                   const std::string& checkpoint) {
  check_names(expected, tensors, checkpoint);
  std::vector<std::string> wrong_shapes;
  std::vector<std::string> wrong_dtypes;
  for (const ExpectedTensor& weight : expected) {
    const TensorView& view = tensors.find(weight.name)->second;
    if (view.shape != weight.shape)
      wrong_shapes.push_back(fmt::format("{} should be {} and is {}", weight.name, shape_text(weight.shape),
                                         shape_text(view.shape)));
    if (!is_weight_dtype(view.dtype))
      wrong_dtypes.push_back(fmt::format("{} is {}", weight.name, dtype_name(view.dtype)));
  }
  if (!wrong_shapes.empty())
    throw Error("{}: tensors do not fit the sizes in config.json: {}", checkpoint, listed(wrong_shapes));
  if (!wrong_dtypes.empty())
    throw Error("{}: weights should be F32, F16 or BF16: {}", checkpoint, listed(wrong_dtypes));
}

DType dominating_dtype(const std::vector<ExpectedTensor>& expected, const TensorMap& tensors) {
  std::map<DType, std::uint64_t> elements;
  for (const ExpectedTensor& weight : expected) {
    const TensorView& view = tensors.find(weight.name)->second;
    elements[view.dtype] += static_cast<std::uint64_t>(view.element_count());
  }
  const auto most = std::max_element(elements.begin(), elements.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == elements.end() ? DType::f32 : most->first;
}

std::int64_t matrix_rows(const TensorMap& tensors, const std::string& name, std::int64_t columns,
                         const std::string& checkpoint) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw Error("{} lacks 1 tensor: {}", checkpoint, name);
  const std::vector<std::int64_t>& shape = found->second.shape;
  if (shape.size() != 2 || shape[1] != columns || shape[0] < 1 ||
      shape[0] > std::numeric_limits<std::int32_t>::max())
    throw Error("{}: tensor {} should have the shape [vocabulary, {}], it has {}", checkpoint, name, columns,
                shape_text(shape));
  return shape[0];
}

}  // namespace sinkscope
