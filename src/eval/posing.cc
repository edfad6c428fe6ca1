#include "eval/posing.h"

#include <sinkscope/error.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "base/text_parts.h"
#include "eval/python_random.h"
#include "eval/task_template.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uint32_t harness_seed = 1234;

struct Document {
  OrderedJson values;
  std::string where;
};

std::vector<Document> read_documents(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<Document> documents;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_blank(lines[i])) continue;
    const std::string where = fmt::format("{} line {}", path.string(), i + 1);
    OrderedJson object = parse_ordered_json(lines[i], where);
    if (!object.is_object()) throw Error("{} must hold a JSON object", where);
    documents.push_back({std::move(object), where});
  }
  if (documents.empty()) throw Error("{} holds no problem", path.string());
  return documents;
}

std::int64_t task_id_of(const Document& document) {
  const auto id = document.values.find("task_id");
  if (id == document.values.end() || !id->is_number_integer())
    throw Error("{} has no whole number `task_id`", document.where);
  return id->get<std::int64_t>();
}

std::vector<Document> kept_documents(const Task& task, const std::filesystem::path& path) {
  std::vector<Document> documents = read_documents(path);
  if (task.kept)
    std::erase_if(documents, [&](const Document& document) {
      const std::int64_t id = task_id_of(document);
      return id < task.kept->first || id > task.kept->second;
    });
  if (documents.empty())
    throw Error("{} holds no problem whose task_id is from {} to {}", path.string(), task.kept->first,
                task.kept->second);
  return documents;
}

// Those with the ids, in their order.
std::vector<Document> documents_of(const std::vector<std::int64_t>& ids, const std::vector<Document>& all,
                                   const std::filesystem::path& path) {
  std::vector<Document> found;
  for (const std::int64_t id : ids) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Document& document) { return task_id_of(document) == id; });
    if (at == all.end()) throw Error("{} holds no example whose task_id is {}", path.string(), id);
    found.push_back(*at);
  }
  return found;
}

std::string cleaned(const Task& task, std::string text) {
  for (const auto& [pattern, by] : task.cleaning) text = pattern.replace_all(text, by);
  return text;
}

// A template that also names the problem in its errors.
class Phrase {
 public:
  Phrase(const std::string& text, const std::string& where) : template_(text, where) {}
  std::string operator()(const Document& document) const {
    try {
      return template_.render(document.values);
    } catch (const Error& error) {
      throw Error("{}: {}", document.where, error.what());
    }
  }

 private:
  TaskTemplate template_;
};

// The examples of all problems, one list a problem, and their texts.
class Examples {
 public:
  Examples(const Task& task, const PosingOptions& options, const std::filesystem::path& problems)
      : count_(static_cast<std::size_t>(options.num_fewshot.value_or(task.shots.count))),
        first_(task.shots.first),
        random_(harness_seed) {
    if (count_ == 0) return;
    if (options.shots.empty() && task.shots.data.empty())
      throw UsageError("--num-fewshot {}: task {} has no examples; --shots FILE names some", count_,
                       task.name);
    const std::filesystem::path path = options.shots.empty()
                                           ? find_data(task, {task.shots.data}, options.data_dir)
                                           : std::filesystem::path(options.shots);
    shares_file_ = std::filesystem::equivalent(path, problems);
    documents_ = shares_file_ ? kept_documents(task, path) : read_documents(path);
    if (!task.shots.ids.empty()) documents_ = documents_of(task.shots.ids, read_documents(path), path);
    if (documents_.size() < count_ + (drawn_from_problems() ? 1 : 0))
      throw Error("{} holds {} examples; task {} wants {}", path.string(), documents_.size(), task.name,
                  count_);
  }

  /// Of the next problem. Called once for each, in their order.
  std::vector<const Document*> next(std::size_t problem) {
    std::vector<const Document*> chosen;
    if (count_ == 0) return chosen;
    for (const std::size_t index : indices(problem)) chosen.push_back(&documents_[index]);
    return chosen;
  }

 private:
  bool drawn_from_problems() const { return shares_file_ && !first_; }

  std::vector<std::size_t> indices(std::size_t problem) {
    std::vector<std::size_t> drawn;
    if (first_) {
      for (std::size_t i = 0; i < count_; ++i) drawn.push_back(i);
      return drawn;
    }
    drawn = random_.sample(documents_.size(), count_ + (drawn_from_problems() ? 1 : 0));
    if (drawn_from_problems()) std::erase(drawn, problem);
    drawn.resize(count_);
    return drawn;
  }

  std::size_t count_;
  bool first_;
  bool shares_file_ = false;
  PythonRandom random_;
  std::vector<Document> documents_;
};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Whether something has to stand between the two.
bool need_delimiter(const std::string& before, const std::string& after) {
  return !after.empty() && (before.empty() || !is_space(before.back())) && !is_space(after.front());
}

void read_choices(const Task& task, const Document& document, Problem& problem) {
  const auto& values = document.values;
  const auto choices = values.find(task.choices);
  if (choices == values.end() || !choices->is_array() || choices->empty() ||
      !std::all_of(choices->begin(), choices->end(),
                   [](const OrderedJson& text) { return text.is_string(); }))
    throw Error("{}: `{}` must be a list of texts", document.where, task.choices);
  for (const OrderedJson& text : *choices) problem.choices.push_back(cleaned(task, text.get<std::string>()));
  const auto label = values.find(task.label);
  // Some files hold the number as a text.
  OrderedJson number = label == values.end() ? OrderedJson() : *label;
  if (number.is_string())
    number = OrderedJson::parse(number.get<std::string>(), nullptr, /*allow_exceptions=*/false);
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= problem.choices.size())
    throw Error("{}: `{}` must be the index of the right choice, from 0 to {}", document.where, task.label,
                problem.choices.size() - 1);
  problem.label = number.get<std::size_t>();
  problem.target = problem.choices[problem.label];
}

}  // namespace

std::filesystem::path find_data(const Task& task, const std::vector<std::string>& names,
                                const std::filesystem::path& data_dir) {
  std::vector<std::filesystem::path> places;
  for (const std::string& name : names) {
    if (!task.folder.empty()) places.push_back(task.folder / name);
    if (data_dir.empty()) continue;
    places.push_back(data_dir / name);
    places.push_back(data_dir / std::filesystem::path(name).filename());
  }
  if (places.empty()) throw UsageError("task {} needs {}: give --data-dir DIR", task.name, names.front());
  std::vector<std::string> looked_at;
  for (const std::filesystem::path& place : places) {
    if (std::filesystem::exists(place)) return place;
    looked_at.push_back(place.string());
  }
  throw Error("task {}: there is no {}; --data-dir or `sinkscope fetch --dataset` would help", task.name,
              fmt::join(looked_at, " nor "));
}

PosedTask pose_problems(const Task& task, const PosingOptions& options) {
  const std::filesystem::path path = find_data(task, task.data, options.data_dir);
  const std::vector<Document> documents = kept_documents(task, path);
  const std::string name = "task " + task.name;
  const Phrase text(task.doc_to_text, name + ": doc_to_text");
  const Phrase target(task.doc_to_target, name + ": doc_to_target");
  const Phrase example_target(task.shots.target.empty() ? task.doc_to_target : task.shots.target,
                              name + ": fewshot.doc_to_target");
  const Phrase gen_prefix(task.gen_prefix, name + ": gen_prefix");
  Examples examples(task, options, path);
  const std::size_t count =
      options.limit ? std::min(documents.size(), static_cast<std::size_t>(*options.limit)) : documents.size();
  PosedTask posed;
  posed.original = documents.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Document& document = documents[i];
    Problem problem;
    problem.index = static_cast<std::int64_t>(i);
    problem.document = document.values;
    problem.context = task.introduction;
    for (const Document* example : examples.next(i))
      problem.context += cleaned(task, text(*example)) + task.target_delimiter + example_target(*example) +
                         task.shot_delimiter;
    problem.context += cleaned(task, text(document));
    problem.gen_prefix = gen_prefix(document);
    if (need_delimiter(problem.context, problem.gen_prefix))
      problem.gen_prefix.insert(0, task.target_delimiter);
    if (task.kind == TaskKind::choose)
      read_choices(task, document, problem);
    else
      problem.target = target(document);
    posed.problems.push_back(std::move(problem));
  }
  return posed;
}

}  // namespace sinkscope
