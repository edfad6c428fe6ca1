#include "checkpoint/hub_cache.h"

#include "checkpoint_fixture.h"
#include "support/environment.h"

namespace sinkscope {
namespace {

using testing::Environment;
using ::testing::HasSubstr;

TEST(HubIdTest, IdsAndAliasesAreRead) {
  const auto id = parse_hub_id("GSAI-ML/LLaDA-8B-Instruct@refs/pr/1");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->organisation, "GSAI-ML");
  EXPECT_EQ(id->name, "LLaDA-8B-Instruct");
  EXPECT_EQ(id->revision, "refs/pr/1");
  EXPECT_EQ(id->text(), "GSAI-ML/LLaDA-8B-Instruct@refs/pr/1");
  EXPECT_EQ(parse_hub_id("a/b")->revision, "main");
  EXPECT_EQ(parse_hub_id("a/b")->text(), "a/b");
  EXPECT_EQ(parse_hub_id("LLaDA")->text(), "GSAI-ML/LLaDA-8B-Instruct");
  EXPECT_EQ(parse_hub_id("Dream@v1")->text(), "Dream-org/Dream-v0-Instruct-7B@v1");
  EXPECT_EQ(parse_hub_id("MMaDA")->text(), "Gen-Verse/MMaDA-8B-MixCoT");
}

TEST(HubIdTest, WhatTheHubForbidsIsNoId) {
  for (const char* text : {"", "a", "a/", "/b", "a/b/c", "a--c/b", "a/b--c", "a/..", "a/b..c", "-a/b", "a/b-",
                           "a/b.", "a/b@", "a/b@../c", "a/b@/c", "a b/c", "a/b\n", "a/b@v 1"})
    EXPECT_FALSE(parse_hub_id(text)) << text;
  EXPECT_FALSE(parse_hub_id("a/" + std::string(97, 'b')));
}

TEST(HubIdTest, ACommitIsFortyHexadecimalDigits) {
  EXPECT_TRUE(is_commit(std::string(40, 'a')));
  EXPECT_FALSE(is_commit(std::string(40, 'A')));
  EXPECT_FALSE(is_commit(std::string(39, 'a')));
  EXPECT_FALSE(is_commit("main"));
}

TEST(HubCacheTest, PathsAreExpandedAsPythonDoes) {
  const Environment home("HOME", "/h");
  const Environment set("SINKSCOPE_TEST_PLACE", "p q");
  const Environment unset("SINKSCOPE_TEST_NOTHING", nullptr);
  EXPECT_EQ(expand_path("~"), "/h");
  EXPECT_EQ(expand_path("~/x"), "/h/x");
  EXPECT_EQ(expand_path("a/~"), "a/~");
  EXPECT_EQ(expand_path("~user/x"), "~user/x");
  EXPECT_EQ(expand_path("/a/$SINKSCOPE_TEST_PLACE/b"), "/a/p q/b");
  EXPECT_EQ(expand_path("${SINKSCOPE_TEST_PLACE}x"), "p qx");
  EXPECT_EQ(expand_path("$SINKSCOPE_TEST_NOTHING/${SINKSCOPE_TEST_NOTHING}"),
            "$SINKSCOPE_TEST_NOTHING/${SINKSCOPE_TEST_NOTHING}");
  EXPECT_EQ(expand_path("$/${/${}/a$"), "$/${/${}/a$");
  EXPECT_EQ(expand_path(""), "");
}

TEST(HubCacheTest, TheFolderFollowsTheEnvironment) {
  const Environment user("HOME", "/h");
  const Environment xdg("XDG_CACHE_HOME", nullptr);
  const Environment home("HF_HOME", nullptr);
  const Environment old("HUGGINGFACE_HUB_CACHE", nullptr);
  const Environment cache("HF_HUB_CACHE", nullptr);
  EXPECT_EQ(hub_cache_folder(), "/h/.cache/huggingface/hub");
  const Environment xdg_set("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(hub_cache_folder(), "/x/huggingface/hub");
  const Environment home_set("HF_HOME", "~/hf");
  EXPECT_EQ(hub_cache_folder(), "/h/hf/hub");
  const Environment old_set("HUGGINGFACE_HUB_CACHE", "/old");
  EXPECT_EQ(hub_cache_folder(), "/old");
  const Environment cache_set("HF_HUB_CACHE", "$HOME/c");
  EXPECT_EQ(hub_cache_folder(), "/h/c");
  const Environment empty("HF_HUB_CACHE", "");
  EXPECT_EQ(hub_cache_folder(), "/old");
}

TEST(HubCacheTest, ASnapshotsFolderTellsHowToCompleteIt) {
  const std::string commit(40, 'c');
  const std::string snapshot = "/x/models--a--b/snapshots/" + commit;
  EXPECT_EQ(fetch_advice(snapshot), "; `sinkscope fetch a/b@" + commit + "` completes it");
  EXPECT_EQ(fetch_advice(snapshot + "/"), fetch_advice(snapshot));
  for (const std::string& other :
       {std::string("/"), std::string("/models/mine"), snapshot + "/sub",
        "/x/datasets--a--b/snapshots/" + commit, "/x/models--a/snapshots/" + commit})
    EXPECT_EQ(fetch_advice(other), "") << other;
}

// A download that was interrupted: what is missing is named, and how to go on.
TEST(HubCacheTest, AnIncompleteSnapshotIsNamedKindly) {
  const TemporaryFolder cache;
  const auto snapshot = cache.path() / "models--a--b" / "snapshots" / std::string(40, 'c');
  std::filesystem::create_directories(snapshot);
  const auto message = [&] { return error_of([&] { Checkpoint::open(snapshot); }); };
  EXPECT_THAT(message(), HasSubstr("holds no config.json"));
  EXPECT_THAT(message(), HasSubstr("`sinkscope fetch a/b@cccc"));
  write_text(snapshot / "config.json", "{}");
  EXPECT_THAT(message(), HasSubstr("holds no weights"));
  EXPECT_THAT(message(), HasSubstr("`sinkscope fetch a/b@cccc"));
  write_text(
      snapshot / "model.safetensors.index.json",
      R"({"weight_map": {"x": "model-00001-of-00002.safetensors", "y": "model-00002-of-00002.safetensors"}})");
  std::filesystem::create_symlink("../../blobs/gone", snapshot / "model-00001-of-00002.safetensors");
  EXPECT_THAT(message(), HasSubstr("lacks 2 of the 2 files"));
  EXPECT_THAT(message(), HasSubstr("`sinkscope fetch a/b@cccc"));
}

}  // namespace
}  // namespace sinkscope
