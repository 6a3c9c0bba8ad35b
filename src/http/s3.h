// s3.h - buckets as AWS's own tools find them: by environment variables and the credentials file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/remote.h"
#include "http/address.h"

namespace lowtide {

// All of it is secret.
struct S3Keys {
  std::string access_key;
  std::string secret_key;
  std::string token;  // of a session; empty if there is none
};

// The keys of a profile in the text of a credentials file: sections in brackets, "name = value".
// Nullopt if the profile is not there or lacks one of the two keys.
[[nodiscard]] std::optional<S3Keys> parse_credentials(std::string_view text,
                                                      std::string_view profile);

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else the profile AWS_PROFILE
// ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Nullopt: there are none, so
// requests are sent without a signature, as public buckets allow.
[[nodiscard]] std::optional<S3Keys> find_s3_keys();

// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, and AWS_REGION or AWS_DEFAULT_REGION. An endpoint
// without a region is in us-east-1. Throws IoError(EINVAL) if there is neither.
[[nodiscard]] S3Place find_s3_place(const std::string& shown);

// Signs with Signature Version 4. Looks for the keys when it is made, and again when a server has
// refused them. Holds them; they are never shown.
[[nodiscard]] std::shared_ptr<const Signer> make_s3_signer(const std::string& region);

}  // namespace lowtide
