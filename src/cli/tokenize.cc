// `sinkscope tokenize`: text to ids and back.
#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include <filesystem>
#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/option_table.h"

namespace sinkscope {
namespace {

struct TokenizeOptions {
  std::string model;
  std::vector<std::string> text;
  std::string file;
  bool special = false;
  bool decode = false;
};

std::vector<std::int32_t> ids_of(const std::string& line, const std::string& where) {
  const Json value = parse_json(line, where);
  if (!value.is_array()) throw Error("{} must hold a JSON list of ids, not {}", where, json_type_name(value));
  std::vector<std::int32_t> ids;
  for (const Json& id : value) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max())
      throw Error("{}: {} is not a token id; ids are integers from 0 to 2147483647", where,
                  json_line(id).substr(0, 40));
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

void tokenize_command(const TokenizeOptions& options) {
  if (options.text.empty() && options.file.empty())
    throw UsageError("nothing to do: give --text TEXT or --file FILE (- reads standard input)");
  const Tokenizer tokenizer = Tokenizer::load(locate_model(options.model));
  const auto encode = [&](const std::string& text) {
    print_line(json_line(Json(tokenizer.encode(text, options.special))));
  };
  const auto decode = [&](const std::vector<std::int32_t>& ids) {
    print_line(json_line(Json(tokenizer.decode(ids))));
  };
  for (const std::string& text : options.text) {
    if (options.decode)
      decode(ids_of(text, "--text"));
    else
      encode(text);
  }
  if (options.file.empty()) return;
  for_each_line(options.file, [&](const std::string& line, const std::string& where) {
    if (options.decode)
      decode(ids_of(line, where));
    else
      encode(text_of_line(line, where));
  });
}

}  // namespace

void add_tokenize_command(CLI::App& program) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = program.add_subcommand("tokenize", "Text to token ids, one JSON list a line, and back");
  OptionTable table(*command);
  command->add_option("MODEL", options->model, "model, or a folder with only tokenizer files")->required();
  table.repeatable("text", options->text, "a text (with --decode: a JSON list of ids); repeatable");
  table.option("file", options->file,
               "JSON Lines with `text` (with --decode: lists of ids); - is standard input");
  table.flag("special", options->special, "add what the post-processor adds");
  table.flag("decode", options->decode, "ids to JSON strings, special tokens kept");
  command->callback([options] { tokenize_command(*options); });
}

}  // namespace sinkscope
