// Golden fixtures as tensors, and comparisons with their tolerances.
#pragma once

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/checkpoint.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace sinkscope::testing {

/// The fixtures of the project; those of trained models hold other people's texts and lie beside it, where
/// given.
inline std::filesystem::path golden_dir(const std::string& name) {
  const auto own = std::filesystem::path(SINKSCOPE_TEST_DATA) / "golden" / name;
  return std::filesystem::exists(own) ? own : std::filesystem::path(SINKSCOPE_SHARED_DIR) / "models" / name;
}

inline at::Tensor to_tensor(const TensorView& view) {
  const at::ScalarType type = view.dtype == DType::i64   ? at::kLong
                              : view.dtype == DType::i32 ? at::kInt
                                                         : at::kFloat;
  EXPECT_EQ(dtype_size(view.dtype), c10::elementSize(type));
  at::Tensor tensor = at::empty(view.shape, at::TensorOptions(type));
  std::memcpy(tensor.data_ptr(), view.bytes.data(), view.bytes.size());
  return tensor;
}

/// golden.safetensors and golden.json of one fixture.
class Golden {
 public:
  explicit Golden(const std::string& name) : file_(golden_dir(name) / "golden.safetensors") {
    std::ifstream(golden_dir(name) / "golden.json") >> cases_;
  }
  const nlohmann::json& cases() const { return cases_.at("cases"); }
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  at::Tensor tensor(const std::string& name) const { return to_tensor(file_.tensor(name)); }

 private:
  SafetensorsFile file_;
  nlohmann::json cases_;
};

/// |a - b| <= absolute + relative * |b| everywhere; NaN equals NaN.
inline ::testing::AssertionResult near(const at::Tensor& a, const at::Tensor& b, double absolute,
                                       double relative = 0) {
  if (a.sizes() != b.sizes())
    return ::testing::AssertionFailure() << "shapes " << a.sizes() << " and " << b.sizes();
  const at::Tensor x = a.to(at::kDouble);
  const at::Tensor y = b.to(at::kDouble);
  const at::Tensor off =
      at::nan_to_num((x - y).abs(), 1e300) - (absolute + relative * at::nan_to_num(y.abs(), 0.0));
  const at::Tensor both_nan = at::isnan(x).logical_and(at::isnan(y));
  const double worst = off.masked_fill(both_nan, -1.0).numel() == 0
                           ? -1
                           : off.masked_fill(both_nan, -1.0).max().item<double>();
  if (worst <= 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "over the tolerance by " << worst;
}

/// The tolerance of column sums: 1e-4 or 1e-5 relative, whichever is larger.
inline ::testing::AssertionResult near_columns(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes())
    return ::testing::AssertionFailure() << "shapes " << a.sizes() << " and " << b.sizes();
  const double worst = ((a - b).abs() - at::clamp_min(b.abs() * 1e-5, 1e-4)).max().item<double>();
  if (worst <= 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "column sums over the tolerance by " << worst;
}

}  // namespace sinkscope::testing
