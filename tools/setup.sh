# shellcheck shell=sh
# Part of ./dev: finds out what is missing on this machine and fetches it. Nothing outside .dev/ changes,
# except that root installs Debian packages.
# shellcheck disable=SC2154 # state and venv are set by ./dev

debs=$state/debs-root # Debian packages, unpacked for a user who may not install them

use_tools() {
  PATH=$venv/bin:$PATH
  if [ -d "$debs/usr" ]; then
    lib=$debs/usr/lib/$(c++ -dumpmachine)
    PATH=$PATH:$debs/usr/bin
    export CMAKE_PREFIX_PATH="$debs/usr${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
    export CPATH="$debs/usr/include:$debs/usr/include/$(c++ -dumpmachine)${CPATH:+:$CPATH}"
    export LIBRARY_PATH="$lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
    export LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
  export PATH
}

has_header() { printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | c++ -E -x c++ -; }
has_python_h() {
  python3 -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' ||
    has_header "python$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')/Python.h"
}
has_pip() { python3 -m ensurepip --version || python3 -m pip --version || [ -d "$debs/usr/share/python-wheels" ]; }
find_clang() { # one that finds its own headers
  for clang in clang++-14 clang++; do
    say '#include <cstddef>' | "$clang" -x c++ -fsyntax-only - 2>/dev/null && say "$clang" && return
  done
  return 1
}

find_sanitizer() { # a clang that can link AddressSanitizer, which is a package of its own
  clang=$(find_clang) || return
  say 'int main() {}' | "$clang" -x c++ -fsanitize=address -o /dev/null - 2>/dev/null && say "$clang"
}

# missing build|test: prints "packages|loss" for each line below whose probe fails. The packages of a
# build come first: ./dev demo needs no others.
missing() {
  while IFS='|' read -r probe packages loss; do
    if [ -n "$packages" ]; then
      $probe >/dev/null 2>&1 </dev/null || say "$packages|$loss"
    elif [ "$1" = build ]; then
      return
    fi
  done <<'END'
command -v c++|g++|nothing can be built
has_header liburing.h|liburing-dev|each build downloads its sources
has_header curl/curl.h|libcurl4-openssl-dev|each build downloads its sources
has_header CLI/CLI.hpp|libcli11-dev|each build downloads its sources
has_python_h|python3-dev|no Python package
has_pip|python3-venv python3-pip-whl|the Python tools need another pip
what only tests and benchmarks need
has_header gtest/gtest.h|libgtest-dev|no C++ tests
has_header benchmark/benchmark.h|libbenchmark-dev|no micro benchmarks
command -v ccache|ccache|builds take longer
find_sanitizer|clang-14 libclang-rt-14-dev|no fuzzing, no build with clang
command -v ld.lld-14|lld-14|sanitized tests take longer to link
command -v fio|fio|bench has no fio row
chromium --version|chromium|the report is not looked at in a browser
command -v zsh|zsh|the completion of zsh is not tried
command -v fish|fish|the completion of fish is not tried
command -v groff|groff-base|the manual page is not formatted
END
}

install_packages() { # as root
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -qq -y --no-install-recommends "$@" && return
  apt-get update -qq && apt-get install -qq -y --no-install-recommends "$@"
}

unpack_packages() { # as anybody: with what they depend on, into $debs
  [ "$1" != g++ ] || return # a compiler does not work from another place
  mkdir -p "$debs" "$state/debs" "$state/apt/lists/partial" "$state/apt/archives/partial"
  export APT_CONFIG="$state/apt/conf"
  say "Dir::Cache \"$state/apt\";" >"$APT_CONFIG"
  if ! plan "$@"; then # the system's lists are empty or old: use our own
    say "Dir::State::Lists \"$state/apt/lists\";" >>"$APT_CONFIG"
    apt-get update -qq
    plan "$@" || printf '%s\n' "$@" >"$state/apt/plan" # at least themselves
  fi
  (
    cd "$state/debs" || exit
    xargs apt-get download -qq <"$state/apt/plan" || exit
    for deb in *.deb; do dpkg -x "$deb" "$debs" && rm "$deb" || exit; done
  ) || return
  [ "$1" != chromium ] || wrap_chromium
}

wrap_chromium() { # it and its libraries and fonts expect to be below /
  lib=lib/$(c++ -dumpmachine)
  cat >"$debs/fonts.conf" <<END
<fontconfig><dir>$debs/usr/share/fonts</dir><cachedir>$debs/font-cache</cachedir></fontconfig>
END
  cat >"$debs/usr/bin/chromium" <<END
#!/bin/sh
export FONTCONFIG_FILE="$debs/fonts.conf"
export LD_LIBRARY_PATH="$debs/usr/$lib:$debs/$lib:$debs/usr/$lib/pulseaudio"
exec "$debs/usr/lib/chromium/chromium" "\$@"
END
}

# Only what is not installed: an upgrade of an installed package must not get into $debs.
plan() {
  apt-get install -s --no-install-recommends "$@" >"$state/apt/simulation" &&
    sed -n 's/^Inst \([^ ]*\) (.*/\1/p' "$state/apt/simulation" >"$state/apt/plan"
}

get_packages() {
  if ! command -v apt-get; then
    return 1
  elif [ "$(id -u)" = 0 ]; then
    install_packages "$@"
  else
    unpack_packages "$@"
  fi
}

setup_packages() { # setup_packages build|test: root gets all at once; else, or if that fails, each
  missing "$1" >"$state/missing"
  packages=$(cut -d '|' -f 1 "$state/missing")
  # shellcheck disable=SC2086 # a list of packages
  [ -n "$packages" ] && [ "$(id -u)" = 0 ] && get_packages $packages </dev/null && return
  while IFS='|' read -r packages loss; do
    # shellcheck disable=SC2086 # a list of packages
    get_packages $packages </dev/null || say "could not get $packages: $loss"
  done <"$state/missing"
}

tell_losses() {
  missing "$1" | while IFS='|' read -r packages loss; do say "  $packages missing: $loss"; done
  command -v c++ >/dev/null || die "no C++ compiler: install g++ 12 or later"
}

setup_venv() {
  rm -rf "$venv" "$state/stamps/python" "$state/stamps/tools" "$state/stamps/docs"
  hash -r
  if ! python3 -m venv "$venv"; then # Debian's python3 without python3-venv
    python3 -m venv --without-pip "$venv" || return
    wheel=$(find "$debs/usr/share/python-wheels" -name 'pip-*.whl')
    "$venv/bin/python" "$wheel/pip" install pip ||
      python3 -m pip --python "$venv/bin/python" install pip || return
  fi
  install_tools build-requirements.txt
}

install_tools() { "$venv/bin/python" -m pip install --no-compile -r "tools/$1"; }

# What it takes to build the Python package.
setup_build() {
  command -v python3 >/dev/null || die "python3 is missing: install Python 3.11 or later"
  use_tools
  once packages "$(cksum tools/setup.sh) $(id -u)" step "Debian packages" setup_packages build
  use_tools # again: now with the packages unpacked
  tell_losses build
  once venv "$(cksum tools/build-requirements.txt) $(python3 -V)" \
    step "Python build tools" setup_venv
}

# And to test it: Debian packages and Python packages at the same time. `setup COMMAND...` runs the
# command, which needs only the former, while the latter are installed.
setup() {
  setup_build
  lane once tools "$(cksum tools/*requirements.txt)" step "Python tools" install_tools requirements.txt
  once test-packages "$(cksum tools/setup.sh) $(id -u)" step "Debian packages, tests" setup_packages test
  use_tools
  "$@"
  join
  tell_losses test
}
