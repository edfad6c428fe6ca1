#include "checkpoint/locate.h"

#include "checkpoint_fixture.h"
#include "support/environment.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Environment;
using ::testing::HasSubstr;

class LocateTest : public ::testing::Test {
 protected:
  LocateTest() {
    places_.built_in = {directory_.path() / "first", directory_.path() / "second"};
    places_.hub_cache = directory_.path() / "hub";
  }
  // A snapshot of a model in the layout of the hub cache.
  fs::path add_snapshot(const std::string& folder, const std::string& commit) {
    const fs::path snapshot = places_.hub_cache / folder / "snapshots" / commit;
    fs::create_directories(snapshot);
    return snapshot;
  }
  void add_reference(const std::string& folder, const std::string& revision, const std::string& content) {
    write_text(places_.hub_cache / folder / "refs" / revision, content);
  }
  fs::path locate(std::string_view name) { return locate_model(name, places_); }
  std::string error_for(std::string_view name) {
    return error_of([&] { locate(name); });
  }

  TemporaryFolder directory_;
  ModelPlaces places_;
};

TEST_F(LocateTest, ADirectoryIsItself) { EXPECT_EQ(locate(directory_.path().string()), directory_.path()); }

TEST_F(LocateTest, AFileIsNoModel) {
  const fs::path file = write_text(directory_.path() / "model.safetensors", "x");
  EXPECT_THAT(error_for(file.string()), HasSubstr("is a file; a model is the directory"));
}

TEST_F(LocateTest, BuiltInNamesAreLookedForInOrder) {
  fs::create_directories(places_.built_in[1] / "small");
  EXPECT_EQ(locate("small"), places_.built_in[1] / "small");
  fs::create_directories(places_.built_in[0] / "small");
  EXPECT_EQ(locate("small"), places_.built_in[0] / "small");
}

TEST_F(LocateTest, AliasesAreHuggingFaceIds) {
  for (const auto& [alias, folder] : {std::pair("LLaDA", "models--GSAI-ML--LLaDA-8B-Instruct"),
                                      std::pair("Dream", "models--Dream-org--Dream-v0-Instruct-7B"),
                                      std::pair("MMaDA", "models--Gen-Verse--MMaDA-8B-MixCoT")}) {
    const fs::path snapshot = add_snapshot(folder, "c0ffee");
    add_reference(folder, "main", "c0ffee");
    EXPECT_EQ(locate(alias), snapshot);
  }
}

TEST_F(LocateTest, RevisionsAreBranchesOrCommits) {
  const fs::path old = add_snapshot("models--a--b", "aaa");
  const fs::path recent = add_snapshot("models--a--b", "bbb");
  add_reference("models--a--b", "main", "bbb\n");
  add_reference("models--a--b", "v1", "aaa");
  add_reference("models--a--b", "refs/pr/1", "aaa");
  EXPECT_EQ(locate("a/b"), recent);
  EXPECT_EQ(locate("a/b@v1"), old);
  EXPECT_EQ(locate("a/b@aaa"), old);
  EXPECT_EQ(locate("a/b@refs/pr/1"), old);
}

TEST_F(LocateTest, WhatIsNotThereIsSaidWithThePlaces) {
  fs::create_directories(places_.built_in[1] / "small");
  fs::create_directories(places_.built_in[1] / "other");  // no model
  write_text(places_.built_in[1] / "small" / "config.json", "{}");
  EXPECT_THAT(error_for("smell"),
              AllOf(HasSubstr("\"smell\""), HasSubstr("(small;"), HasSubstr("first"), HasSubstr("second")));
  EXPECT_THAT(error_for("a/b"), AllOf(HasSubstr("a/b"), HasSubstr(places_.hub_cache.string()),
                                      HasSubstr("`sinkscope fetch a/b`")));
  EXPECT_THAT(error_for("LLaDA"), HasSubstr("GSAI-ML/LLaDA-8B-Instruct"));
  add_snapshot("models--a--b", "aaa");
  EXPECT_THAT(error_for("a/b@v2"), AllOf(HasSubstr("no revision v2 of a/b"), HasSubstr("snapshots/v2"),
                                         HasSubstr("`sinkscope fetch a/b@v2`")));
  add_reference("models--a--b", "v3", "gone");
  EXPECT_THAT(error_for("a/b@v3"), HasSubstr("no revision v3"));
  places_.hub_cache.clear();
  EXPECT_THAT(error_for("a/b"), HasSubstr("HF_HUB_CACHE"));
}

TEST_F(LocateTest, NoNameLeadsOutOfTheCache) {
  fs::create_directories(places_.hub_cache);
  for (const char* name :
       {"a/..", "../b", "a/b@../../x", "a/b@", "a/b@v1/../..", "a/b/c", "./none", ".hidden"})
    EXPECT_THAT(error_for(name), HasSubstr("no model")) << name;
  add_snapshot("models--a--b", "aaa");
  add_reference("models--a--b", "main", "../../..");
  EXPECT_THAT(error_for("a/b"), HasSubstr("should hold a commit"));
}

TEST_F(LocateTest, EmptyNamesAreWrongUse) {
  EXPECT_THROW(locate(""), UsageError);
  EXPECT_THROW(locate(std::string_view("a\0b", 3)), UsageError);
}

TEST(ModelPlacesTest, TheHubCacheFollowsTheEnvironment) {
  const Environment cache_set("HF_HUB_CACHE", "/c");
  EXPECT_EQ(model_places().hub_cache, "/c");
}

TEST(ModelPlacesTest, OwnModelsComeFirst) {
  const Environment own("SINKSCOPE_MODELS", "/own");
  EXPECT_EQ(model_places().built_in.front(), "/own");
}

TEST(ModelPlacesTest, TheSourceTreesModelsAreFound) {
  const Environment own("SINKSCOPE_MODELS", nullptr);
  EXPECT_TRUE(fs::exists(locate_model("tiny-llada") / "config.json"));
}

}  // namespace
}  // namespace sinkscope
