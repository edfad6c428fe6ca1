// How fast this machine multiplies a model's matrices when nothing else is asked of it: what the speed of a
// forward pass is measured against.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/product.h"

namespace sinkscope {

/// A weight W [out, in] of the product y = x W^T.
struct WeightSize {
  std::int64_t out = 0;
  std::int64_t in = 0;
};

/// The products of all layers and the head on `rows` rows of x, as oneDNN does them best: weights in the
/// layout it asks for, results in a plain one, all threads of the process on each product, nothing in
/// between. Weights are random and its own: as many layers as exceed any cache, used in rotation, and one
/// head.
class ProductCeiling {
 public:
  /// The number of threads must stay what it is at construction.
  ProductCeiling(ProductType type, std::int64_t rows, const std::vector<WeightSize>& layer,
                 std::int64_t layers, WeightSize head);
  ~ProductCeiling();
  ProductCeiling(const ProductCeiling&) = delete;
  ProductCeiling& operator=(const ProductCeiling&) = delete;

  /// Every product once.
  void run();

  /// 2 per multiply-add.
  double flops() const;

  ProductType type() const;

 private:
  struct Products;
  std::unique_ptr<Products> products_;
};

}  // namespace sinkscope
