// The generator of the built-in models' training texts keeps its promises.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;

testing::ProgramResult generate(const std::string& out, std::vector<std::string> options = {}) {
  std::vector<std::string> arguments{std::string(SINKSCOPE_SOURCE_DIR) + "/models/recipes/sums/generate.py",
                                     "--out", out};
  if (options.empty() || options.front() != "--problems")
    options.insert(options.begin(),
                   {"--problems", "2000", "--arithmetic", "300", "--stories", "100", "--heldout", "300"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_program(arguments, {.in_child = {}, .meanwhile = {}, .program = "/usr/bin/python3"});
}

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::vector<json> lines;
  std::istringstream text(content_of(file));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

bool is_word_problem(const json& line) {
  return line.contains("prompt") && line["answer"].get<std::string>().find("####") != std::string::npos;
}

int calculate(int a, const std::string& sign, int b) {
  return sign == "+" ? a + b : sign == "-" ? a - b : a * b;
}

std::multiset<int> numbers_in(const std::string& text) {
  std::multiset<int> numbers;
  const std::regex number("[0-9]+");
  for (std::sregex_iterator found(text.begin(), text.end(), number), end; found != end; ++found)
    numbers.insert(std::stoi(found->str()));
  return numbers;
}

// Every equation is true, uses numbers of the prompt or the last result, and the last line repeats the last
// result. Returns the number of equations, 0 when anything is wrong.
int correct_steps(const std::string& prompt, const std::string& answer) {
  const std::regex equation(R"((\d+) ([-+*]) (\d+) = (\d+))");
  std::multiset<int> known = numbers_in(prompt);
  std::istringstream lines(answer);
  int steps = 0, last = -1;
  for (std::string line; std::getline(lines, line);) {
    if (line == "#### " + std::to_string(last)) return lines.peek() == EOF ? steps : 0;
    std::smatch part;
    if (!std::regex_match(line, part, equation)) return 0;
    const int a = std::stoi(part[1]), b = std::stoi(part[3]);
    if (!known.contains(a) || !known.contains(b)) return 0;
    last = std::stoi(part[4]);
    if (calculate(a, part[2], b) != last) return 0;
    known.insert(last);
    ++steps;
  }
  return 0;
}

class Recipes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "there is no /usr/bin/python3";
  }
  // Makes the texts and returns the lines of the training set.
  std::vector<json> train(const std::string& name, const std::vector<std::string>& options = {}) {
    const auto result = generate(folder / name, options);
    EXPECT_EQ(result.status, 0) << result.error;
    return lines_of(folder / name / "train.jsonl");
  }
  std::vector<json> heldout(const std::string& name) { return lines_of(folder / name / "heldout.jsonl"); }
  TemporaryFolder folder;
};

TEST_F(Recipes, TheSeedDecidesEverything) {
  train("a");
  train("b", {"--seed", "1"});
  train("c", {"--seed", "2"});
  for (const char* name : {"train.jsonl", "heldout.jsonl"}) {
    EXPECT_EQ(content_of(folder / "a" / name), content_of(folder / "b" / name));
    EXPECT_NE(content_of(folder / "a" / name), content_of(folder / "c" / name));
  }
  const std::filesystem::path recipe = std::string(SINKSCOPE_SOURCE_DIR) + "/models/recipes/sums";
  EXPECT_FALSE(std::filesystem::exists(recipe / "__pycache__"));
}

TEST_F(Recipes, SolutionsAreRight) {
  int problems = 0, sums = 0, stories = 0, two_steps = 0;
  for (const json& line : train("a")) {
    if (line.contains("text")) {
      const std::string text = line["text"];
      const auto words = std::count(text.begin(), text.end(), ' ') + 1;
      EXPECT_TRUE(words >= 60 && words <= 150) << text;
      EXPECT_EQ(text.find_first_of("{}[]|"), std::string::npos) << text;  // no template shows through
      ++stories;
      continue;
    }
    const std::string prompt = line["prompt"], answer = line["answer"];
    if (is_word_problem(line)) {
      const int steps = correct_steps(prompt, answer);
      EXPECT_GT(steps, 0) << line;
      EXPECT_EQ(prompt.find_first_of("{}[]|"), std::string::npos) << prompt;
      two_steps += steps == 2;
      ++problems;
    } else {
      std::smatch part;
      ASSERT_TRUE(std::regex_match(prompt, part, std::regex(R"((\d+) ([-+*]) (\d+) =)"))) << prompt;
      EXPECT_EQ(calculate(std::stoi(part[1]), part[2], std::stoi(part[3])), std::stoi(answer)) << prompt;
      ++sums;
    }
  }
  EXPECT_EQ(problems, 2000);
  EXPECT_EQ(sums, 300);
  EXPECT_EQ(stories, 100);
  EXPECT_NEAR(two_steps, 800, 100);  // 22 is a standard deviation
  for (const json& line : heldout("a")) {
    EXPECT_GT(correct_steps(line["prompt"], line["answer"]), 0) << line;
    EXPECT_THAT(line["answer"].get<std::string>(),
                ::testing::EndsWith("\n#### " + std::to_string(line["result"].get<int>())));
  }
  EXPECT_EQ(heldout("a").size(), 300U);
}

// Names are the words with a capital in the middle of a sentence.
std::set<std::string> names_in(const std::vector<json>& problems) {
  std::set<std::string> names;
  const std::regex name("[a-z,] ([A-Z][a-z]+)");
  for (const json& problem : problems) {
    const std::string text = problem["prompt"];
    for (std::sregex_iterator found(text.begin(), text.end(), name), end; found != end; ++found)
      if (!(*found)[1].str().ends_with("day")) names.insert((*found)[1]);
  }
  return names;
}

using Combination = std::pair<std::string, std::multiset<int>>;

Combination combination(const std::string& prompt, const std::set<std::string>& names) {
  const std::regex word("[A-Z][a-z]+");
  for (std::sregex_iterator found(prompt.begin(), prompt.end(), word), end; found != end; ++found)
    if (names.contains(found->str())) return {found->str(), numbers_in(prompt)};
  return {"", numbers_in(prompt)};
}

TEST_F(Recipes, HeldOutCombinationsAreInNoTrainingSet) {
  std::vector<json> training;
  for (const char* seed : {"1", "2"})
    for (const json& line : train(seed, {"--seed", seed, "--largest", "20"}))
      if (is_word_problem(line)) training.push_back(line);
  const std::set<std::string> names = names_in(training);
  EXPECT_GT(names.size(), 70U);
  std::set<Combination> trained;
  std::set<std::string> prompts;
  for (const json& problem : training) {
    trained.insert(combination(problem["prompt"], names));
    prompts.insert(problem["prompt"]);
  }
  EXPECT_GT(prompts.size(), 3990U);  // two seeds may meet
  // So few small numbers that a random choice would meet trained combinations in every other problem.
  for (const char* seed : {"1", "2"})
    for (const json& problem : heldout(seed)) {
      EXPECT_FALSE(prompts.contains(problem["prompt"]));
      EXPECT_FALSE(trained.contains(combination(problem["prompt"], names))) << problem["prompt"];
    }
}

TEST_F(Recipes, OptionsChangeWhatTheySay) {
  const auto largest = [](const std::vector<json>& lines) {
    int found = 0;
    for (const json& line : lines)
      if (line.contains("prompt"))
        for (const int number :
             numbers_in(line["prompt"].get<std::string>() + line["answer"].get<std::string>()))
          found = std::max(found, number);
    return found;
  };
  const auto steps = [](const std::vector<json>& lines) {
    std::map<int, int> counts;
    for (const json& line : lines)
      if (is_word_problem(line)) ++counts[correct_steps(line["prompt"], line["answer"])];
    return counts;
  };
  const auto plain = train("plain");
  EXPECT_EQ(largest(plain), 100);
  const auto easy = train("easy", {"--largest", "12", "--largest-factor", "3", "--two-steps", "0"});
  EXPECT_EQ(largest(easy), 12);
  EXPECT_EQ(steps(easy), (std::map<int, int>{{1, 2000}}));
  EXPECT_EQ(steps(train("hard", {"--two-steps", "1", "--small", "0"})), (std::map<int, int>{{2, 2000}}));
  const auto large = [](const std::vector<json>& lines) {
    return std::count_if(lines.begin(), lines.end(), [](const json& line) {
      return is_word_problem(line) && *numbers_in(line["prompt"].get<std::string>()).rbegin() > 20;
    });
  };
  EXPECT_LT(large(train("small", {"--small", "1"})), large(plain));
  const auto length = [](const std::vector<json>& lines) {
    std::size_t sum = 0;
    for (const json& line : lines)
      if (is_word_problem(line)) sum += line["prompt"].get<std::string>().size();
    return sum;
  };
  EXPECT_LT(length(train("straight", {"--distractors", "0"})), length(plain));
}

TEST_F(Recipes, WrongUseIsNamedAndNothingIsOverwritten) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"--largest", "5"}, "--largest is 5"},
      {{"--largest-factor", "1"}, "--largest-factor is 1"},
      {{"--two-steps", "1.5"}, "--two-steps is 1.5"},
      {{"--seed", "-1"}, "--seed is -1"},
      {{"--stories", "-3"}, "--stories is -3"}};
  for (const auto& [options, named] : table) {
    const auto result = generate(folder / "wrong", options);
    EXPECT_EQ(result.status, 2) << named;
    EXPECT_THAT(result.error, HasSubstr(named));
    EXPECT_FALSE(std::filesystem::exists(folder / "wrong"));
  }
  train("a");
  const auto again = generate(folder / "a");
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.error, HasSubstr("train.jsonl exists already"));
}

// The texts and the training itself take hours; that nothing is wrong with the config is seen before.
TEST(SumsRecipe, ItsConfigsAreWhatTrainReads) {
  for (const std::string model : {"sums-llada", "sums-llama"}) {
    const TemporaryFolder folder;
    const std::string recipes = std::string(SINKSCOPE_SOURCE_DIR) + "/models/recipes/sums/";
    testing::write_file(folder / (model + ".json"), content_of(recipes + model + ".json"));
    const auto result = run_program({"train", folder / (model + ".json"), "--out", folder / "run"});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.error, HasSubstr("tokenizer"));  // which is not there: the rest was read
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  }
}

TEST(SumsRecipe, AModelThatItDoesNotMakeIsRefused) {
  const TemporaryFolder folder;
  const auto result = run_program(
      {std::string(SINKSCOPE_SOURCE_DIR) + "/models/recipes/sums/make", "sums-other", folder / "work"},
      {.in_child = {}, .meanwhile = {}, .program = "/bin/bash"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.error, HasSubstr("sums-llada|sums-llama"));
  EXPECT_FALSE(std::filesystem::exists(folder / "work"));
}

TEST(SumsRecipe, ExactMatchesAreCounted) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "there is no /usr/bin/python3";
  const TemporaryFolder folder;
  testing::write_file(folder / "heldout.jsonl",
                      R"({"prompt":"a","answer":"1 + 2 = 3\n#### 3","result":3}
{"prompt":"b","answer":"9 - 2 = 7\n#### 7","result":7}
{"prompt":"c","answer":"2 * 2 = 4\n#### 4","result":4}
{"prompt":"d","answer":"2 * 4 = 8\n#### 8","result":8}
)");
  std::filesystem::create_directory(folder / "run");
  testing::write_file(folder / "run/samples.jsonl", R"({"index":0,"text":"1 + 2 = 3\n#### 3"}
{"index":2,"text":"2 + 2 = 4\n#### 4 #### 5"}
{"index":1,"text":"9 - 2 = 7\n#### 70"}
{"index":3,"text":"8"}
)");
  const auto result = run_program({std::string(SINKSCOPE_SOURCE_DIR) + "/models/recipes/sums/exact_match.py",
                                   folder / "run", folder / "heldout.jsonl"},
                                  {.in_child = {}, .meanwhile = {}, .program = "/usr/bin/python3"});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("right result: 2 of 4, 50.0 % (standard error 28.9)"));
  EXPECT_THAT(result.out, HasSubstr("exact match: 1 of 4, 25.0 % (standard error 25.0)"));
}

}  // namespace
}  // namespace sinkscope
