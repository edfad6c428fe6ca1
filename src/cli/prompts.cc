#include "cli/prompts.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <iterator>
#include <map>

#include "base/files.h"
#include "base/json.h"
#include "base/text_parts.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

// Which fields of a line hold what. The first one that is there counts.
struct Fields {
  std::vector<std::string> text;
  std::vector<std::string> reference;
  std::vector<std::string> id;
};

const Fields free_form{{"prompt", "question"}, {"reference", "answer"}, {"id", "task_id"}};

struct Dataset {
  std::vector<std::string> files;  // below --data-dir, the first that exists
  Fields fields;
};

const std::map<std::string, Dataset, std::less<>>& datasets() {
  static const std::map<std::string, Dataset, std::less<>> table{
      {"gsm8k", {{"gsm8k/test.jsonl", "test.jsonl"}, {{"question"}, {"answer"}, {"id"}}}},
      {"humaneval",
       {{"humaneval/HumanEval.jsonl", "HumanEval.jsonl"}, {{"prompt"}, {"canonical_solution"}, {"task_id"}}}},
      {"mbpp", {{"mbpp/mbpp_test.jsonl", "mbpp_test.jsonl"}, {{"text", "prompt"}, {"code"}, {"task_id"}}}},
      {"math500", {{"math500/test.jsonl", "test.jsonl"}, {{"problem"}, {"answer"}, {"unique_id"}}}}};
  return table;
}

std::optional<std::string> field(const Json& object, const std::vector<std::string>& names,
                                 const std::string& where) {
  for (const std::string& name : names) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) continue;
    if (found->is_string()) return found->get<std::string>();
    if (found->is_number()) return found->dump();
    throw Error("{}: `{}` must be a string, not {}", where, name, json_type_name(*found));
  }
  return std::nullopt;
}

Prompt prompt_of_line(std::string_view line, const Fields& fields, const std::string& where,
                      std::size_t number) {
  const Json object = parse_json(line, where);
  if (!object.is_object())
    throw Error("{} must hold a JSON object with `{}`, not {}", where, fields.text.front(),
                json_type_name(object));
  const std::optional<std::string> text = field(object, fields.text, where);
  if (!text)
    throw Error("{} has no `{}`", where,
                fields.text.front() + (fields.text.size() > 1 ? "` or `" + fields.text[1] : ""));
  return {field(object, fields.id, where).value_or(std::to_string(number)),
          *text,
          field(object, fields.reference, where),
          {}};
}

// JSON Lines when the name or the first line says so, else one prompt a line. Blank lines are passed over.
void add_file(const std::filesystem::path& path, const Fields& fields, std::vector<Prompt>& prompts) {
  const std::string content = read_file(path);
  const std::vector<std::string_view> lines = lines_of(content);
  const auto first =
      std::find_if(lines.begin(), lines.end(), [](std::string_view line) { return !is_blank(line); });
  if (first == lines.end())
    throw Error("{} holds no prompt: it has no line that is not blank", path.string());
  const bool is_json = path.extension() == ".jsonl" || path.extension() == ".json" || first->starts_with('{');
  std::size_t number = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_blank(lines[i])) continue;
    if (is_json)
      prompts.push_back(
          prompt_of_line(lines[i], fields, fmt::format("{} line {}", path.string(), i + 1), number));
    else
      prompts.push_back({std::to_string(number), std::string(lines[i]), {}, {}});
    ++number;
  }
}

void add_dataset(const PromptOptions& options, std::vector<Prompt>& prompts) {
  const auto found = datasets().find(options.dataset);
  if (found == datasets().end())
    throw UsageError("--dataset {} is unknown; it takes gsm8k, humaneval, mbpp or math500", options.dataset);
  if (options.data_dir.empty())
    throw UsageError("--dataset {} needs --data-dir, the folder that holds {}", options.dataset,
                     found->second.files.front());
  for (const std::string& file : found->second.files) {
    const std::filesystem::path path = std::filesystem::path(options.data_dir) / file;
    if (std::filesystem::exists(path)) return add_file(path, found->second.fields, prompts);
  }
  throw Error("--data-dir {} holds no {}", options.data_dir, found->second.files.front());
}

// "2024-07-26", or nothing for what is no day.
std::optional<std::chrono::year_month_day> parse_date(std::string_view text) {
  const auto number = [&](std::size_t begin, std::size_t count) {
    int value = -1;
    const char* const end = text.data() + begin + count;
    const auto result = std::from_chars(text.data() + begin, end, value);
    return result.ec == std::errc() && result.ptr == end ? value : -1;
  };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  if (year < 1 || month < 1 || day < 1) return std::nullopt;
  const std::chrono::year_month_day date = std::chrono::year(year) / month / day;
  return date.ok() ? std::optional(date) : std::nullopt;
}

// The text without white space: templates trim and indent.
std::string without_space(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char c) { return std::string_view(" \t\r\n").find(c) == std::string_view::npos; });
  return out;
}

}  // namespace

void validate(const TemplateOptions& options) {
  if (options.raw && !options.system.empty())
    throw UsageError("--system belongs to the chat template that --raw leaves out; give one of them");
  if (options.raw && !options.name.empty())
    throw UsageError("--template names the chat template that --raw leaves out; give one of them");
  if (!options.name.empty()) (void)chat_template_named(options.name);
  if (!parse_date(options.date))
    throw UsageError("--template-date \"{}\" is no day; one of the form 2024-07-26 would be right",
                     options.date);
}

std::string todays_date() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:04}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday);
}

ChatTemplate choose_chat_template(const TemplateOptions& options, const std::filesystem::path& model_dir,
                                  std::string_view family) {
  ChatTemplate chat = options.name.empty() ? choose_chat_template(model_dir, family)
                                           : chat_template_named(options.name, model_dir);
  if (const auto date = parse_date(options.date)) chat.today = *date;
  return chat;
}

std::string templated(const ChatTemplate& chat, const TemplateOptions& options, const std::string& prompt) {
  std::vector<Message> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  messages.push_back({"user", prompt});
  const std::string text = apply_chat_template(chat, messages);
  // A template without a system role may raise an exception or just pass over the message.
  if (!options.system.empty() &&
      without_space(text).find(without_space(replace_invalid_utf8(options.system))) == std::string::npos)
    throw UsageError("--system: the chat template {} leaves the system message out", chat.name);
  return text;
}

std::vector<std::int32_t> parse_ids(std::string_view text, std::string_view option) {
  std::vector<std::int32_t> ids;
  if (is_blank(text)) return ids;
  const std::string_view whole = text;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    part.remove_prefix(std::min(part.find_first_not_of(" \t"), part.size()));
    part = part.substr(0, part.find_last_not_of(" \t") + 1);
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (part.empty() || error != std::errc() || end != part.data() + part.size() || id < 0)
      throw UsageError("{} \"{}\": '{}' is not a token id; give ids from 0 on with commas between them",
                       option, whole.substr(0, 60), part.substr(0, 30));
    ids.push_back(id);
    if (comma == std::string_view::npos) return ids;
    text.remove_prefix(comma + 1);
  }
}

std::vector<Prompt> read_prompts(const PromptOptions& options) {
  if (options.num_samples && *options.num_samples < 1)
    throw UsageError("--num-samples is {}; it must be at least 1", *options.num_samples);
  if (!options.data_dir.empty() && options.dataset.empty())
    throw UsageError("--data-dir needs --dataset gsm8k, humaneval, mbpp or math500");
  std::vector<Prompt> prompts;
  for (const std::string& text : options.prompt)
    prompts.push_back({std::to_string(prompts.size()), text, {}, {}});
  if (!options.prompts.empty()) add_file(options.prompts, free_form, prompts);
  if (!options.dataset.empty()) add_dataset(options, prompts);
  for (const std::string& ids : options.prompt_ids)
    prompts.push_back({std::to_string(prompts.size()), "", {}, parse_ids(ids, "--prompt-ids")});
  if (prompts.empty())
    throw UsageError(
        "no prompt: give --prompt TEXT, --prompts FILE, --dataset NAME --data-dir DIR or --prompt-ids IDS");
  if (options.num_samples && static_cast<std::size_t>(*options.num_samples) < prompts.size())
    prompts.resize(static_cast<std::size_t>(*options.num_samples));
  return prompts;
}

}  // namespace sinkscope
