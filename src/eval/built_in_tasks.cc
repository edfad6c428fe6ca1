#include "eval/built_in_tasks.h"

#include <algorithm>
#include <array>

namespace sinkscope {
namespace {

struct BuiltIn {
  std::string_view name;
  std::string_view json;
};

// Prompts, stop strings and patterns of gsm8k, gsm8k_cot, gsm8k_cot_zeroshot, humaneval, humaneval_instruct,
// mbpp, minerva_math500 and hellaswag are those of lm-evaluation-harness (revision 4e7e0d4), by which
// published numbers are made. Those of countdown, math500 and sudoku are ours.
constexpr std::array tasks{
    BuiltIn{"countdown", R"json({
  "task": "countdown", "version": 1, "data": "planning/cd3_test.jsonl",
  "fewshot": {"count": 8, "data": "planning/cd3_test.jsonl", "sampler": "random"},
  "description": "Reach the target by calculating with the numbers: +, -, * and /, every number once, results may be used further. Write the equations with commas between them.\n\n",
  "doc_to_text": "Numbers: {{ input.split(',')[:-1] | join(', ') }}. Target: {{ input.split(',')[-1] }}.\nEquations:",
  "doc_to_target": "{{output}}",
  "until": ["\n"], "gen_len": 32, "metric": "countdown"
})json"},
    BuiltIn{"gsm8k", R"json({
  "task": "gsm8k", "version": 3, "data": "gsm8k/test.jsonl",
  "fewshot": {"count": 5, "data": "gsm8k/train.jsonl", "sampler": "random"},
  "doc_to_text": "Question: {{question}}\nAnswer:",
  "doc_to_target": "{{answer}}",
  "until": ["Question:", "</s>", "<|im_end|>"], "gen_len": 256,
  "filters": [
    {"name": "strict-match", "regex": "#### (\\-?[0-9\\.\\,]+)"},
    {"name": "flexible-extract", "regex": "(-?[$0-9.,]{2,})|(-?[0-9]+)", "match": "last"}
  ],
  "metric": "exact_match", "ignore": [",", "\\$", "(?s).*#### ", "\\.$"], "ignore_case": true
})json"},
    BuiltIn{"gsm8k_cot", R"json({
  "task": "gsm8k_cot", "version": 3, "data": "gsm8k/test.jsonl",
  "fewshot": {"count": 8, "data": "shots/gsm8k_cot.jsonl", "sampler": "first_n", "doc_to_target": "{{target}}"},
  "doc_to_text": "Q: {{question}}\nA:",
  "doc_to_target": "{{ answer.split('####')[-1].strip() }}",
  "until": ["Q:", "</s>", "<|im_end|>"], "gen_len": 256,
  "filters": [
    {"name": "strict-match", "regex": "The answer is (\\-?[0-9\\.\\,]+)."},
    {"name": "flexible-extract", "regex": "(-?[$0-9.,]{2,})|(-?[0-9]+)", "match": "last"}
  ],
  "metric": "exact_match", "ignore": [",", "\\$", "(?s).*#### ", "\\.$"], "ignore_case": true
})json"},
    BuiltIn{"gsm8k_cot_zeroshot", R"json({
  "task": "gsm8k_cot_zeroshot", "version": 3, "data": "gsm8k/test.jsonl",
  "doc_to_text": "Q: {{question}}\nA: Let's think step by step.",
  "doc_to_target": "{{answer}}",
  "until": ["Q:", "</s>", "<|im_end|>"], "gen_len": 256,
  "filters": [
    {"name": "strict-match", "regex": "The answer is (\\-?[0-9\\.\\,]+)."},
    {"name": "flexible-extract", "regex": "(-?[$0-9.,]{2,})|(-?[0-9]+)", "match": "last"}
  ],
  "metric": "exact_match", "ignore": [",", "\\$", "(?s).*#### ", "\\.$"], "ignore_case": true
})json"},
    BuiltIn{"hellaswag", R"json({
  "task": "hellaswag", "version": 1, "output_type": "multiple_choice",
  "data": ["hellaswag/hellaswag_val.jsonl", "hellaswag/val_first1000.jsonl"],
  "doc_to_text": "{{ activity_label if activity_label is defined else activity }}: {{ ctx_a + ' ' + ctx_b.capitalize() if ctx_a is defined else ctx }}",
  "doc_to_choice": "endings", "doc_to_label": "label",
  "clean": [["\\A\\s+|\\s+\\Z", ""], [" \\[title\\]", ". "], ["\\[.*?\\]", ""], ["  ", " "]]
})json"},
    BuiltIn{"humaneval", R"json({
  "task": "humaneval", "version": 1, "data": "humaneval/HumanEval.jsonl",
  "doc_to_text": "{{prompt}}",
  "doc_to_target": "{{test}}\ncheck({{entry_point}})",
  "until": ["\nclass", "\ndef", "\n#", "\nif", "\nprint"], "gen_len": 512,
  "filters": [{"name": "create_test", "take": "raw"}],
  "metric": "code", "metric_name": "pass@1",
  "program": "{{prompt}}{{response}}", "tests": "{{test}}\ncheck({{entry_point}})"
})json"},
    BuiltIn{"humaneval_instruct", R"json({
  "task": "humaneval_instruct", "version": 4, "data": "humaneval/HumanEval.jsonl",
  "doc_to_text": "Write a solution to the following problem and make sure that it passes the tests:\n```python\n{{prompt}}\n```\n",
  "gen_prefix": "Here is the completed function:\n```python\n{{prompt}}\n",
  "doc_to_target": "{{test}}\ncheck({{entry_point}})",
  "until": ["\nclass", "\ndef", "\n#", "\nif", "\nprint"], "gen_len": 512,
  "filters": [{"name": "create_test", "take": "before_fence"}],
  "metric": "code", "metric_name": "pass@1",
  "program": "{{prompt}}{{response}}", "tests": "{{test}}\ncheck({{entry_point}})"
})json"},
    BuiltIn{"math500", R"json({
  "task": "math500", "version": 1, "data": "math500/test.jsonl",
  "doc_to_text": "{{problem}}\nReason step by step, and put the final answer within \\boxed{}.",
  "doc_to_target": "{{answer}}",
  "until": [], "gen_len": 512,
  "filters": [{"name": "boxed", "take": "boxed"}],
  "metric": "math_equal"
})json"},
    BuiltIn{"mbpp", R"json({
  "task": "mbpp", "version": 1, "data": "mbpp/mbpp.jsonl", "task_ids": [11, 510],
  "fewshot": {"count": 3, "data": "mbpp/mbpp.jsonl", "sampler": "first_n", "task_ids": [2, 3, 4],
              "doc_to_target": "{{code}}\n[DONE]"},
  "doc_to_text": "You are an expert Python programmer, and here is your task: {{text}} Your code should pass these tests:\n\n{{test_list[0]}}\n{{test_list[1]}}\n{{test_list[2]}}\n[BEGIN]\n",
  "doc_to_target": "{{ test_list | join('\n') }}",
  "target_delimiter": "",
  "until": ["[DONE]"], "gen_len": 512,
  "filters": [{"name": "none", "take": "raw"}],
  "metric": "code", "metric_name": "pass_at_1",
  "program": "{{response}}", "tests": "{{ test_list | join('\n') }}"
})json"},
    BuiltIn{"minerva_math500", R"json({
  "task": "minerva_math500", "version": 1, "data": "math500/test.jsonl",
  "fewshot": {"count": 4, "data": "shots/minerva_math.jsonl", "sampler": "first_n", "doc_to_target": "{{solution}}"},
  "doc_to_text": "Problem:\n{{problem}}\n\nSolution:",
  "doc_to_target": "{{answer}}",
  "until": ["Problem:"], "gen_len": 512,
  "filters": [{"name": "none", "regex": "Final Answer: The final answer is(.*?)\\. I hope it is correct\\.",
               "fallback": "[invalidanswer]"}],
  "metric": "math_equal"
})json"},
    BuiltIn{"sudoku", R"json({
  "task": "sudoku", "version": 1, "data": "planning/sudoku_4x4_10.jsonl",
  "fewshot": {"count": 8, "data": "planning/sudoku_4x4_10.jsonl", "sampler": "random"},
  "description": "Fill the 4 x 4 sudoku: every row, every column and every 2 x 2 box holds 1, 2, 3 and 4. A 0 is an empty cell.\n\n",
  "doc_to_text": "Puzzle:\n{{input}}\nSolution:\n",
  "doc_to_target": "{{output}}",
  "target_delimiter": "",
  "until": ["\n\n", "Puzzle:"], "gen_len": 24, "metric": "sudoku"
})json"},
};

}  // namespace

std::string_view built_in_task(std::string_view name) {
  const auto* const found =
      std::find_if(tasks.begin(), tasks.end(), [&](const BuiltIn& task) { return task.name == name; });
  return found == tasks.end() ? std::string_view() : found->json;
}

std::vector<std::string> built_in_task_names() {
  std::vector<std::string> names;
  for (const BuiltIn& task : tasks) names.emplace_back(task.name);
  return names;
}

}  // namespace sinkscope
