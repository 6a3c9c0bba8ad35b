# shellcheck shell=sh
# Part of ./dev: the tests. Those that wait run beside what compiles, in a lane of their own.
# shellcheck disable=SC2154 # state and the rest are set by ./dev

run_tests() {
  case $* in
  '') test_all ;;
  --fast) test_fast ;;
  --cluster) test_cluster ;;
  --fast*) die "./dev test --fast takes no other options" ;;
  *) test_some "$@" ;;
  esac
}

test_all() {
  rm -f "$state"/skips/*
  check
  step "C++ build" cmake_build dev
  lane step "C++ tests, consumer" run_ctest dev
  python_package
  build_docs # beside the C++ tests: ./dev docs would wait for them
  join
  lane step "Python tests" run_pytest
  sanitizer_builds
  step "asan, ubsan tests" run_ctest asan
  step "tsan, threaded tests" run_ctest tsan
  fuzz
  join
  close_tests
}

test_fast() { # what most changes break
  rm -f "$state"/skips/*
  check
  step "C++ build" cmake_build dev
  lane step "C++ tests" run_ctest dev -LE slow
  python_package
  step "Python tests" run_pytest -m "not slow"
  join
  close_tests
}

test_some() { # -k chooses C++ test files as well; all options go to pytest
  build
  word=
  previous=
  for option; do
    case $previous in -k) word=$option ;; esac
    previous=$option
  done
  if [ -n "$word" ]; then
    ctest --preset dev -R "$(say "$word" | tr '[:upper:]' '[:lower:]')" --no-tests=ignore
  fi
  python -m pytest "$@" || [ $? -eq 5 ] # 5: no Python test matches
}

# Ray and Dask are too heavy for every run of the tests: a gigabyte, in an environment of their own.
test_cluster() {
  setup_build
  python_package
  cluster=$state/cluster
  once cluster "$(cksum tools/requirements-cluster.txt) $(python3 -V)" \
    step "Python tools, cluster" install_cluster
  site=$(cd "$venv" && echo lib/python3.*/site-packages)
  ln -sfn "$venv/$site/lowtide" "$cluster/$site/lowtide"
  step "cluster tests" "$cluster/bin/python" -m pytest tests/python/test_jobs_cluster.py tests/python/test_ray.py
}

install_cluster() {
  rm -rf "$cluster"
  python3 -m venv "$cluster" && "$cluster/bin/python" -m pip install -r tools/requirements-cluster.txt
}

# Tests of which this machine could run more than it did have failed: tools/check_skips.py.
run_ctest() {
  preset=$1
  shift
  case $preset in
  tsan) without_aslr ctest --preset tsan -j "$test_jobs" "$@" || return ;;
  *) ctest --preset "$preset" -j "$test_jobs" "$@" || return ;;
  esac
  python tools/check_skips.py "$state/skips/$preset" "build/$preset/Testing/Temporary/LastTest.log"
}

run_pytest() {
  python -m pytest -n "$test_jobs" --dist loadfile --no-loadscope-reorder --durations 60 "$@" >"$state/logs/pytest.log" 2>&1
  result=$?
  cat "$state/logs/pytest.log"
  [ $result -eq 0 ] || return $result
  python tools/check_skips.py "$state/skips/python" "$state/logs/pytest.log"
}

close_tests() { # and, at the end of all, how pytest closes
  python tools/check_skips.py --sum "$state"/skips/*
  tail -n 1 "$state/logs/pytest.log"
}

# With clang where there is one: its sanitized tests take less time than those of g++, and so the library,
# the command and the tests of threads are compiled by both. Its asan build contains the fuzzers.
# AddressSanitizer checks the library, so its tests are those that the preset dev has compiled.
sanitizer_builds() {
  compiled=-DLOWTIDE_COMPILED_TESTS=$PWD/build/dev/tests
  if clang=$(find_sanitizer); then
    step "asan build, fuzzers" sanitizer_build asan "$compiled" -DLOWTIDE_FUZZ=ON
  else
    clang=c++
    step "asan build" sanitizer_build asan "$compiled"
  fi
  step "tsan build" sanitizer_build tsan
}

sanitizer_build() {
  preset=$1
  shift
  # CMake forgets the preset when the compiler of a build folder changes.
  grep -q "^CMAKE_CXX_COMPILER:[A-Z]*=\(.*/\)*$clang\$" "build/$preset/CMakeCache.txt" 2>/dev/null ||
    rm -rf "build/$preset"
  cmake_build "$preset" "-DCMAKE_CXX_COMPILER=$clang" "$@"
}

# ThreadSanitizer of g++ 12 and clang 14 cannot live with the address randomisation of newer kernels.
without_aslr() {
  if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi
}

fuzz_all() { # a minute each, all at the same time
  running=
  for source in fuzz/*_fuzz.cc; do
    name=$(basename "$source" _fuzz.cc)
    found=$state/fuzz/$name
    mkdir -p "$found"
    "build/asan/fuzz/${name}_fuzz" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=1024 \
      -dict="fuzz/$name.dict" -artifact_prefix="$found-" "$found" "tests/golden/$name" &
    running="$running $!"
  done
  failed=0
  for one in $running; do wait "$one" || failed=1; done
  return $failed
}

fuzz() {
  if find_sanitizer >/dev/null; then
    step "fuzz" fuzz_all
  else
    say "fuzzing                     skipped: no clang"
  fi
}
