#include "hub/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include "support/environment.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using testing::Environment;
using ::testing::HasSubstr;

class Settings : public ::testing::Test {
 protected:
  std::string error() {
    try {
      hub_settings();
    } catch (const UsageError& wrong) {
      return wrong.what();
    }
    return "(no UsageError)";
  }

  testing::TemporaryFolder folder_;
  const Environment home_{"HF_HOME", folder_.path().c_str()};
  const Environment cache_{"HF_HUB_CACHE", nullptr};
  const Environment old_cache_{"HUGGINGFACE_HUB_CACHE", nullptr};
  const Environment endpoint_{"HF_ENDPOINT", nullptr};
  const Environment token_{"HF_TOKEN", nullptr};
  const Environment old_token_{"HUGGING_FACE_HUB_TOKEN", nullptr};
  const Environment token_path_{"HF_TOKEN_PATH", nullptr};
  const Environment implicit_{"HF_HUB_DISABLE_IMPLICIT_TOKEN", nullptr};
  const Environment offline_{"HF_HUB_OFFLINE", nullptr};
  const Environment transformers_{"TRANSFORMERS_OFFLINE", nullptr};
};

TEST_F(Settings, DefaultsAreThePublicHubWithoutAToken) {
  const HubSettings settings = hub_settings();
  EXPECT_EQ(settings.endpoint, "https://huggingface.co");
  EXPECT_EQ(settings.token, "");
  EXPECT_EQ(settings.cache, folder_.path() / "hub");
  EXPECT_FALSE(settings.offline);
}

TEST_F(Settings, EndpointIsAnAddress) {
  const Environment mirror("HF_ENDPOINT", "https://mirror.org/hf//");
  EXPECT_EQ(hub_settings().endpoint, "https://mirror.org/hf");
  for (const char* wrong : {"mirror.org", "ftp://mirror.org", "https://mirror.org?x=1"}) {
    const Environment endpoint("HF_ENDPOINT", wrong);
    EXPECT_THAT(error(), HasSubstr("HF_ENDPOINT is")) << wrong;
  }
}

TEST_F(Settings, TheTokenComesFromTheVariableThenFromTheFile) {
  testing::write_file(folder_ / "token", " of-the-home \n");
  EXPECT_EQ(hub_settings().token, "of-the-home");
  testing::write_file(folder_ / "other", "of-the-path");
  const Environment path("HF_TOKEN_PATH", (folder_ / "other").c_str());
  EXPECT_EQ(hub_settings().token, "of-the-path");
  const Environment old("HUGGING_FACE_HUB_TOKEN", "old");
  EXPECT_EQ(hub_settings().token, "old");
  const Environment token("HF_TOKEN", "new\n");
  EXPECT_EQ(hub_settings().token, "new");
  const Environment none("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1");
  EXPECT_EQ(hub_settings().token, "");
}

TEST_F(Settings, ATokenCannotSmuggleHeaders) {
  const Environment token("HF_TOKEN", "a\r\nX-Other: b");
  EXPECT_THAT(error(), HasSubstr("HF_TOKEN holds no token"));
}

TEST_F(Settings, OfflineIsAnyWordForYes) {
  for (const char* yes : {"1", "ON", "yes", "True"}) {
    const Environment offline("HF_HUB_OFFLINE", yes);
    EXPECT_TRUE(hub_settings().offline) << yes;
  }
  const Environment no("HF_HUB_OFFLINE", "0");
  EXPECT_FALSE(hub_settings().offline);
  const Environment other("TRANSFORMERS_OFFLINE", "1");
  EXPECT_TRUE(hub_settings().offline);
}

}  // namespace
}  // namespace sinkscope
