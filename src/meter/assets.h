// assets.h - the plain files beside this one, as they are; cmake/embed.cmake puts them into the
// library.
#pragma once

#include <string_view>

namespace lowtide {

extern const std::string_view kChartCss;  // of every picture, alone or in a page
extern const std::string_view kChartJs;   // draws it again in a page
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

}  // namespace lowtide
