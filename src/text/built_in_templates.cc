#include "text/built_in_templates.h"

namespace sinkscope {
namespace {

// LLaDA, MMaDA and Llama 3 differ in the newlines behind a header alone. MMaDA's and LLaDA's own programs
// open the assistant's turn always, Llama 3's when asked to; we always ask.
std::string headers(const std::string& newlines) {
  return R"({%- for message in messages %}
{{- bos_token if loop.first }}
{{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>)" +
         newlines + R"(' ~ message.content | trim ~ '<|eot_id|>' }}
{%- endfor %}
{{- '<|start_header_id|>assistant<|end_header_id|>)" +
         newlines + "' }}";
}

// ChatML. Qwen2 and Dream put a system message of their own where none is given.
std::string chatml(const std::string& default_system) {
  const std::string opening = default_system.empty() ? ""
                                                     : R"({%- if messages and messages[0].role != 'system' %}
{{- '<|im_start|>system\n)" + default_system + R"(<|im_end|>\n' }}
{%- endif %}
)";
  return opening + R"({%- for message in messages %}
{{- '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}
{%- endfor %}
{{- '<|im_start|>assistant\n' }})";
}

// The system message stands inside the first user's turn, and every user's turn begins a sequence.
const char* const llama_2 = R"({%- set system = namespace(text='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- if not loop.first %}{{ raise_exception('the system message of llama-2 must come first') }}{% endif %}
{%- set system.text = '<<SYS>>\n' ~ message.content ~ '\n<</SYS>>\n\n' %}
{%- elif message.role == 'user' %}
{{- bos_token ~ '[INST] ' ~ (system.text ~ message.content) | trim ~ ' [/INST]' }}
{%- set system.text = '' %}
{%- elif message.role == 'assistant' %}
{{- ' ' ~ message.content | trim ~ ' ' ~ eos_token }}
{%- else %}
{{- raise_exception('llama-2 has no role ' ~ message.role) }}
{%- endif %}
{%- endfor %})";

// v0.3, where [INST] and [/INST] are tokens: no space before the latter. The system message stands in the
// last user's turn.
const char* const mistral = R"({%- set system = namespace(text='') %}
{{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- if not loop.first %}{{ raise_exception('the system message of mistral must come first') }}{% endif %}
{%- set system.text = message.content ~ '\n\n' %}
{%- elif message.role == 'user' %}
{{- '[INST] ' ~ (system.text if loop.last) ~ message.content ~ '[/INST]' }}
{%- elif message.role == 'assistant' %}
{{- ' ' ~ message.content | trim ~ eos_token }}
{%- else %}
{{- raise_exception('mistral has no role ' ~ message.role) }}
{%- endif %}
{%- endfor %})";

const char* const mistral_v0_1 = R"({{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'user' %}
{{- '[INST] ' ~ message.content ~ ' [/INST]' }}
{%- elif message.role == 'assistant' %}
{{- message.content ~ eos_token ~ ' ' }}
{%- else %}
{{- raise_exception('mistral-v0.1 has no role ' ~ message.role) }}
{%- endif %}
{%- endfor %})";

// Ling's format: a system turn always, and roles by names of their own.
const char* const llada_moe = R"({{- '<role>SYSTEM</role>' }}
{%- if messages and messages[0].role == 'system' %}
{{- messages[0].content ~ '\n' }}
{%- endif %}
{{- 'detailed thinking off<|role_end|>' }}
{%- set names = {'user': 'HUMAN', 'assistant': 'ASSISTANT', 'system': 'SYSTEM'} %}
{%- for message in messages %}
{%- if message.role not in names %}
{{- raise_exception('llada-moe has no role ' ~ message.role) }}
{%- elif not (loop.first and message.role == 'system') %}
{{- '<role>' ~ names[message.role] ~ '</role>' ~ message.content ~ '<|role_end|>' }}
{%- endif %}
{%- endfor %}
{{- '<role>ASSISTANT</role>' }})";

}  // namespace

const std::vector<BuiltInTemplate>& built_in_templates() {
  const std::map<std::string, std::string> llada_tokens{{"bos_token", "<|startoftext|>"}};
  const std::map<std::string, std::string> sentencepiece_tokens{{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  const std::string helpful = "You are a helpful assistant.";
  static const std::vector<BuiltInTemplate> templates{
      {"llada", headers(R"(\n\n)"), llada_tokens},
      {"mmada", headers(R"(\n)"), llada_tokens},
      {"llada-moe", llada_moe, {}},
      {"dream", chatml(helpful), {}},
      {"llama-3", headers(R"(\n\n)"), {{"bos_token", "<|begin_of_text|>"}}},
      {"llama-2", llama_2, sentencepiece_tokens},
      {"mistral", mistral, sentencepiece_tokens},
      {"mistral-v0.1", mistral_v0_1, sentencepiece_tokens},
      {"chatml", chatml(""), {}},
      {"qwen2", chatml(helpful), {}},
      {"qwen3", chatml(""), {}},
  };
  return templates;
}

}  // namespace sinkscope
