// Addresses on the hub.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/hub_cache.h"

namespace sinkscope {

/// Everything but letters, digits, "-._~" and the characters of `kept` as %XX.
std::string percent_encoded(std::string_view text, std::string_view kept = "");

/// ENDPOINT/api/models/ORG/NAME/revision/REV?blobs=true
std::string repository_url(const std::string& endpoint, const HubId& id);

/// ENDPOINT/ORG/NAME/resolve/COMMIT/FILE
std::string file_url(const std::string& endpoint, const HubId& id, const std::string& commit,
                     const std::string& file);

/// "https://host:443": who may see what is meant for an address. "" when the text is no http(s) address with
/// a host.
std::string origin_of(const std::string& url);

}  // namespace sinkscope
