// The one file that CMake compiles precompiled.h with; the tests reuse the result.
