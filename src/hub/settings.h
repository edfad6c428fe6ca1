// What the environment says about the hub: the variables of Python's huggingface_hub.
#pragma once

#include <filesystem>
#include <string>

namespace sinkscope {

struct HubSettings {
  std::string endpoint;         // HF_ENDPOINT, else https://huggingface.co; without a slash at its end
  std::string token;            // "" for none
  std::filesystem::path cache;  // hub_cache_folder()
  bool offline = false;         // HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
};

/// The token is HF_TOKEN's, else HUGGING_FACE_HUB_TOKEN's (its old name), else that of the file HF_TOKEN_PATH
/// (HF_HOME/token), unless HF_HUB_DISABLE_IMPLICIT_TOKEN. Throws UsageError naming a variable that cannot be
/// right.
HubSettings hub_settings();

}  // namespace sinkscope
