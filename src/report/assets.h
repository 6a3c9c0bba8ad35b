// assets.h - the files of web/, verbatim; cmake/embed.cmake compiles them into the
// library.
#pragma once

#include <string_view>

namespace lowtide {

extern const std::string_view kChartCss;  // for every picture, alone or in a page
extern const std::string_view kChartJs;   // redraws it in a page
extern const std::string_view kCompareCss;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

}  // namespace lowtide
