// redirect.h - where an answer with a Location may lead. Pure text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/address.h"

namespace lowtide {

constexpr unsigned kMostRedirects = 5;

[[nodiscard]] bool is_redirect(int status);

// The address that `location` means in an answer from `from`. Nullopt for one that must not be
// followed: another scheme than http and https, from https to http, from another machine to this
// one or to its neighbours on the link, or no address at all. user:password never comes along: they
// are for `from` alone.
[[nodiscard]] std::optional<Address> redirected(const Address& from, std::string_view location);

}  // namespace lowtide
