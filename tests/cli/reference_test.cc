// The program against a reference of its own in NumPy and float64 (tests/cli/reference), on random models of
// every family.
#include <gmock/gmock.h>

#include "support/program.h"

namespace sinkscope {
namespace {

void expect_agreement(const std::string& what) {
  const std::string check = std::string(SINKSCOPE_SOURCE_DIR) + "/tests/cli/reference/check.py";
  const auto result = testing::run_program({"-B", check, SINKSCOPE_PROGRAM, what},
                                           {.in_child = {}, .meanwhile = {}, .program = "/usr/bin/python3"});
  EXPECT_EQ(result.status, 0) << result.out << result.error;
  EXPECT_THAT(result.out, ::testing::HasSubstr(" 0 differences"));
}

TEST(Reference, ForwardOfEveryFamily) { expect_agreement("forward"); }

TEST(Reference, RunOfEverySampler) { expect_agreement("run"); }

TEST(Reference, ForwardOfEveryVariant) { expect_agreement("variant-forward"); }

TEST(Reference, RunOfVariants) { expect_agreement("variant-run"); }

TEST(Reference, InterventionsAndTheirControls) { expect_agreement("interventions"); }

TEST(Reference, RanksAndEffectsOfInterventions) { expect_agreement("ranks"); }

TEST(Reference, ScoreOfEveryLikelihood) { expect_agreement("score"); }

TEST(Reference, SinksAndNormsOfAutoregressiveModels) { expect_agreement("sinks"); }

}  // namespace
}  // namespace sinkscope
