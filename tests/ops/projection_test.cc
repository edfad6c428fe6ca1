// The fused products against libtorch's operations one after the other, which are the CUDA path.
#include "ops/projection.h"

#include "ops/projection_fixture.h"
#include "ops/rms_norm.h"
#include "support/golden.h"

namespace sinkscope {
namespace {

using testing::near;

// One unit in the last place of bfloat16 where a value lies at a rounding boundary; float32 sums of a few
// hundred products of either order.
double tolerance(at::ScalarType type) { return type == at::kFloat ? 3e-5 : std::exp2(-6); }

struct Case {
  at::ScalarType type;
  std::vector<std::int64_t> offsets;
  std::int64_t width, out;
};
const std::vector<Case> cases{{at::kFloat, {0, 37}, 48, 96},
                              {at::kFloat, {0, 1, 1, 700}, 64, 260},
                              {at::kBFloat16, {0, 37}, 48, 96},
                              {at::kBFloat16, {0, 530, 540}, 64, 2064}};

// Weights as small as a trained model's, so that products are of the size of their inputs.
at::Tensor random_weight(std::int64_t out, std::int64_t in, at::ScalarType type) {
  return (at::randn({out, in}) / std::sqrt(static_cast<double>(in))).to(type);
}

TEST(Project, RotatesQueriesAndKeysAndLeavesValues) {
  for (const Case& c : cases) {
    const std::int64_t head_dim = 12, heads = c.out / head_dim, rows = c.offsets.back();
    const at::Tensor x = at::randn({rows, c.width}).to(c.type);
    const at::Tensor weight = random_weight(heads * head_dim, c.width, c.type);
    const RopeTable table = rope_table(rows, {head_dim, 500000.0}, at::kCPU);
    const at::Tensor positions = at::arange(rows).flip(0).contiguous();
    const Rotation rotation{&table, &positions, head_dim};
    std::vector<at::Tensor> results;
    for (const Backend backend : {Backend::cpu, Backend::aten}) {
      const Linear rotated(backend, weight, {.dtype = c.type, .granule = head_dim});
      const Linear plain(backend, weight, {.dtype = c.type});
      at::Tensor first = testing::room_for(rotated, rows), second = testing::room_for(plain, rows);
      project({{&rotated, &first, &rotation}, {&plain, &second}}, testing::input_for(plain, x),
              plan_rows(c.offsets));
      results.push_back(first);
      results.push_back(second);
    }
    EXPECT_TRUE(near(results[0], results[2], tolerance(c.type), tolerance(c.type)));
    EXPECT_TRUE(near(results[1], results[3], tolerance(c.type), tolerance(c.type)));
    EXPECT_FALSE(at::equal(results[0], results[1]));
  }
}

TEST(Rope, PositionZeroTurnsNothingAndLengthsStay) {
  const at::Tensor x = at::randn({3, 2, 8});
  const at::Tensor turned = apply_rope(x, rope_table(3, {8, 10000.0}, at::kCPU), at::arange(3));
  EXPECT_TRUE(at::equal(turned[0], x[0]));
  EXPECT_FALSE(at::equal(turned[1], x[1]));
  EXPECT_TRUE(near(turned.norm(2, -1), x.norm(2, -1), 1e-5));
}

TEST(ProjectAdd, AddsTheProductToWhatIsThere) {
  for (const Case& c : cases) {
    const std::int64_t rows = c.offsets.back();
    const at::Tensor x = at::randn({rows, c.width}).to(c.type), before = at::randn({rows, c.out}).to(c.type);
    const at::Tensor weight = random_weight(c.out, c.width, c.type);
    std::vector<at::Tensor> results;
    for (const Backend backend : {Backend::cpu, Backend::aten}) {
      const Linear linear(backend, weight, {.dtype = c.type});
      results.push_back(before.clone());
      project_add(linear, nullptr, testing::input_for(linear, x), plan_rows(c.offsets), results.back());
    }
    EXPECT_TRUE(near(results[0], results[1], tolerance(c.type), tolerance(c.type)));
  }
}

TEST(ProjectGated, IsSiluOfTheGateTimesUp) {
  for (const Case& c : cases) {
    const std::int64_t rows = c.offsets.back();
    const at::Tensor x = at::randn({rows, c.width}).to(c.type);
    const at::Tensor gate_weight = random_weight(c.out, c.width, c.type),
                     up_weight = random_weight(c.out, c.width, c.type);
    std::vector<at::Tensor> results;
    for (const Backend backend : {Backend::cpu, Backend::aten}) {
      const Linear gate(backend, gate_weight, {.dtype = c.type}), up(backend, up_weight, {.dtype = c.type});
      at::Tensor result = testing::room_for(gate, rows);
      project_gated(gate, up, testing::input_for(gate, x), plan_rows(c.offsets), result);
      results.push_back(result);
    }
    EXPECT_TRUE(near(results[0], results[1], tolerance(c.type), 3 * tolerance(c.type)));
  }
}

TEST(PrepareNormed, IsThePlainNormInTheFormTheWeightsWant) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = (at::randn({37, 48}) * 5).to(type), weight = at::randn({48}).to(type);
    const at::Tensor plain = rms_norm(x, weight, 1e-5);
    for (const bool int8 : {false, true}) {
      const Linear linear(Backend::cpu, at::randn({8, 48}), {.dtype = type, .int8 = int8});
      ProductInput input = testing::empty_input(linear, 37);
      prepare_normed(Backend::cpu, x, weight, 1e-5, input);
      if (!int8) {
        const double relative = type == at::kFloat ? 1e-6 : std::exp2(-7);
        EXPECT_TRUE(near(input.values, plain, 1e-6, relative));
        continue;
      }
      const at::Tensor back =
          (input.values.to(at::kFloat) - input.zero.unsqueeze(1)) * input.scale.unsqueeze(1);
      const at::Tensor step = input.scale.unsqueeze(1);
      EXPECT_TRUE(((back - plain.to(at::kFloat)).abs() <= step + plain.abs().to(at::kFloat) * std::exp2(-7))
                      .all()
                      .item<bool>());
    }
  }
}

TEST(PlanRows, CutsEachSequenceByItsOwnLength) {
  const std::vector<std::int64_t> offsets{0, 600, 600, 610, 2000};
  const RowPlan plan = plan_rows(offsets);
  std::vector<std::int64_t> covered;
  for (std::int64_t g = 0; g < plan.group_count(); ++g)
    for (const RowPiece& piece : plan.group(g)) {
      EXPECT_LE(piece.rows, most_rows_of_a_piece);
      EXPECT_GT(piece.rows, 0);
      for (std::int64_t i = 0; i < piece.rows; ++i) covered.push_back(piece.begin + i);
    }
  ASSERT_EQ(covered.size(), 2000U);
  for (std::size_t i = 0; i < covered.size(); ++i) ASSERT_EQ(covered[i], static_cast<std::int64_t>(i));
  // 1390 rows alone are cut as they are behind others
  const std::vector<std::int64_t> alone{0, 1390};
  const RowPlan own = plan_rows(alone);
  const std::size_t before = plan.pieces.size() - own.pieces.size();
  for (std::size_t p = 0; p < own.pieces.size(); ++p) {
    EXPECT_EQ(plan.pieces[before + p].rows, own.pieces[p].rows);
    EXPECT_EQ(plan.pieces[before + p].begin, own.pieces[p].begin + 610);
  }
  EXPECT_EQ(plan_rows(std::vector<std::int64_t>{0, 0}).group_count(), 0);
}

}  // namespace
}  // namespace sinkscope
