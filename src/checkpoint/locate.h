// Where models are looked for.
#pragma once

#include <sinkscope/checkpoint.h>

#include <filesystem>
#include <string_view>
#include <vector>

namespace sinkscope {

struct ModelPlaces {
  std::vector<std::filesystem::path> built_in;  // folders of model folders, in order of search
  std::filesystem::path hub_cache;              // empty when the environment names none, not even a home
};

/// SINKSCOPE_MODELS, share/sinkscope/models beside the program and at the install prefix, the source tree's
/// models/; hub_cache_folder() (checkpoint/hub_cache.h).
ModelPlaces model_places();

/// locate_model over given places.
std::filesystem::path locate_model(std::string_view name, const ModelPlaces& places);

}  // namespace sinkscope
