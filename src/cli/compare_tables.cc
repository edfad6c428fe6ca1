#include "cli/compare_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t most_samples = 20;

std::string value_text(const OrderedJson& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array()) return fmt::format("{} to {}", value_text(value[0]), value_text(value[1]));
  return value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump();
}

std::string run_line(const char* name, const OrderedJson& run) {
  std::string line = fmt::format("{}: {}", name, run.at("run").get<std::string>());
  const std::string model = run.at("model").get<std::string>();
  if (!model.empty()) line += ", " + model;
  line += fmt::format(", {} samples\n", run.at("samples").dump());
  if (!run.at("intervention").is_null())
    line += fmt::format("   with sinks masked: {}\n", run.at("intervention").dump());
  return line;
}

std::string row(const std::string& name, const std::string& value) {
  return fmt::format("  {:<44} {:>12}\n", name, value);
}

std::string share_row(const std::string& name, const OrderedJson& part, const OrderedJson& all) {
  return row(name, fmt::format("{} of {}", part.dump(), all.dump()));
}

// A caption and its numbers; nothing where the runs do not have it.
std::string confidence_rows(const std::string& caption, const OrderedJson& change) {
  if (change.is_null()) return "";
  std::string text = fmt::format("\nConfidence, b - a, {}\n", caption);
  if (change.contains("steps")) {
    text += row("steps", value_text(change.at("steps")));
    text += row("removed (layer, head, key)", value_text(change.at("masked_keys")));
  }
  text += row("candidates in both", value_text(change.at("candidates")));
  text += row("mean of a, of b",
              fmt::format("{}, {}", value_text(change.at("mean_a")), value_text(change.at("mean_b"))));
  text += row("mean difference", value_text(change.at("mean_change")));
  text += row("mean absolute difference", value_text(change.at("mean_absolute")));
  text += row("largest absolute difference", value_text(change.at("largest")));
  if (change.contains("interval")) {
    text += row("mean difference of a sample", value_text(change.at("mean_change_of_samples")));
    text += row("  95 % (bootstrap over samples)", value_text(change.at("interval")));
  }
  return text;
}

std::string effect_rows(const char* run, const OrderedJson& effect) {
  if (effect.is_null()) return "";
  std::string text =
      fmt::format("\nPredictions of {} with and without its masking, in the same state\n", run);
  text += row("steps, predictions",
              fmt::format("{}, {}", effect.at("steps").dump(), effect.at("predictions").dump()));
  text += row("mean KL divergence, nats", value_text(effect.at("mean_kl")));
  text += row("share with the same token", value_text(effect.at("agreement")));
  text += row("mean change of confidence", value_text(effect.at("mean_confidence_change")));
  text += row("mean change of the token's probability", value_text(effect.at("mean_probability_change")));
  text += row("mean attention to what is removed", value_text(effect.at("mean_removed_mass")));
  const OrderedJson &first = effect.at("quarters").front(), &last = effect.at("quarters").back();
  text += row("change of confidence, least, most attention",
              fmt::format("{}, {}", value_text(first.at("mean_confidence_change")),
                          value_text(last.at("mean_confidence_change"))));
  const OrderedJson& correlation = effect.at("mass_and_confidence");
  text += row(
      "Spearman, Kendall of attention and change",
      fmt::format("{}, {}", value_text(correlation.at("spearman")), value_text(correlation.at("kendall"))));
  return text;
}

std::string match_rows(const OrderedJson& match) {
  if (match.is_null()) return "";
  std::string text = "\nText equals the reference\n";
  for (const char* run : {"a", "b"}) {
    const OrderedJson& score = match.at(run);
    text += row(run, fmt::format("{} of {}, {} +- {}", score.at("right").dump(), match.at("samples").dump(),
                                 value_text(score.at("share")), value_text(score.at("standard_error"))));
  }
  text += row("right in a alone, in b alone",
              fmt::format("{}, {}", match.at("only_a").dump(), match.at("only_b").dump()));
  text += row("difference b - a", value_text(match.at("difference")));
  text += row("  95 % (bootstrap over samples)", value_text(match.at("interval")));
  text += row("McNemar, exact, two-sided: p", value_text(match.at("mcnemar_p")));
  return text;
}

std::string pooled_rows(const OrderedJson& pooled, bool diffusion) {
  std::string text = "\nAll samples\n";
  text += share_row("equal outputs", pooled.at("outputs_equal"), pooled.at("samples"));
  text += share_row(diffusion ? "equal generated positions" : "equal tokens", pooled.at("equal"),
                    pooled.at("positions"));
  text += row("  share", value_text(pooled.at("share_equal")));
  text += row("mean first position that differs", value_text(pooled.at("mean_first_difference")));
  if (diffusion) {
    text += share_row("trajectories that part", pooled.at("parted"), pooled.at("samples"));
    text += row("  mean step", value_text(pooled.at("mean_parts_at")));
    text += row("Kendall tau of the unmasking order, mean", value_text(pooled.at("kendall_tau")));
  }
  const OrderedJson& confidence = pooled.at("confidence");
  text += confidence_rows("before the trajectories part", confidence.at("before_parting"));
  text += confidence_rows("over all steps", confidence.at("all_steps"));
  text += confidence_rows("where b removed keys and the states are equal", confidence.at("keys_masked"));
  for (const char* run : {"a", "b"}) text += effect_rows(run, pooled.at("effect").at(run));
  return text + match_rows(pooled.at("exact_match"));
}

std::string sample_rows(const OrderedJson& samples) {
  struct Column {
    const char* name;
    const char* place;
  };
  constexpr std::array<Column, 6> columns{{{"outputs equal", "/outputs_equal"},
                                           {"share equal", "/share_equal"},
                                           {"first differs", "/first_difference"},
                                           {"parts at", "/parts_at"},
                                           {"Kendall tau", "/kendall_tau"},
                                           {"confidence b-a", "/confidence/before_parting/mean_change"}}};
  std::string text = fmt::format("\nSamples\n  {:>6}", "index");
  for (const Column& column : columns) text += fmt::format(" {:>14}", column.name);
  for (std::size_t i = 0; i < std::min(samples.size(), most_samples); ++i) {
    text += fmt::format("\n  {:>6}", samples[i].at("index").dump());
    for (const Column& column : columns) {
      const OrderedJson::json_pointer where(column.place);
      text += fmt::format(" {:>14}", samples[i].contains(where) ? value_text(samples[i].at(where)) : "-");
    }
  }
  text += "\n";
  if (samples.size() > most_samples)
    text += fmt::format("  and {} more: --json or --out has all\n", samples.size() - most_samples);
  return text;
}

}  // namespace

std::string compare_tables(const OrderedJson& compared) {
  return run_line("a", compared.at("a")) + run_line("b", compared.at("b")) +
         pooled_rows(compared.at("pooled"), compared.at("kind") == "diffusion") +
         sample_rows(compared.at("samples"));
}

}  // namespace sinkscope
