# pkg_config.sh PKG_CONFIG FOLDER COMPILER VERSION: builds and runs project/main.cc with the flags of
# lowtide.pc in FOLDER.
set -eu
source=$(dirname "$0")/project/main.cc
export PKG_CONFIG_PATH="$2"
[ "$("$1" --modversion lowtide)" = "$4" ]
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # the flags are several words
"$3" -std=c++20 "$source" -o "$work/consumer" $("$1" --cflags --libs lowtide)
cd "$work"
./consumer "$4"
