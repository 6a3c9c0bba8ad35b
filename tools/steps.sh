# shellcheck shell=sh
# Part of ./dev: steps, each a line with its seconds, one after the other or in two lanes.
# shellcheck disable=SC2154 # state is set by ./dev

stop=$state/stop.$$ # there once a step has failed: no lane begins another one
lanes=
trap 'wait; rm -f "$stop"' EXIT # a lane that still runs ends its step

# step NAME COMMAND...: one line with its seconds; on failure the line that matters and the log. Its
# variables have long names, because sh has no local ones.
step() {
  step_name=$1
  step_log=$state/logs/$(printf '%s' "$step_name" | tr -c 'a-zA-Z0-9' '-').log
  shift
  [ ! -e "$stop" ] || exit 1
  [ ! -t 1 ] || printf '%s ...\r' "$step_name"
  step_start=$(date +%s)
  if "$@" >"$step_log" 2>&1; then
    printf '%-28s%s s\n' "$step_name" "$(($(date +%s) - step_start))"
  else
    : >"$stop"
    printf '%-28sfailed after %s s\n' "$step_name" "$(($(date +%s) - step_start))"
    say "  $(what_matters "$step_log")" >&2
    die "  log: $step_log"
  fi
}

# lane COMMAND...: steps beside those that follow; join waits for all lanes, and ends where one failed.
lane() {
  (
    trap - EXIT
    "$@"
  ) &
  lanes="$lanes $!"
}
join() {
  failed=0
  for one in $lanes; do wait "$one" || failed=1; done
  lanes=
  [ $failed = 0 ] || exit 1
}

what_matters() {
  for pattern in 'SUMMARY: ' '(^|[: ])error: ' 'CMake Error' ': Failure$' '^(FAILED|ERROR) ' \
    '^ERROR: ' '^Would reformat' '(Failed|Timeout|SEGFAULT|not found)' '^E '; do
    found=$(grep -E -A 3 -m 1 -e "$pattern" "$1") || continue
    case $pattern in
    'CMake Error' | ': Failure$') printf '%s' "$found" | tr -s ' \n' ' ' | cut -c 1-300 ;;
    *) printf '%s\n' "$found" | head -n 1 ;;
    esac
    return
  done
  tail -n 1 "$1"
}

# once NAME KEY COMMAND...: a step that is skipped while KEY is what it was when it last went well.
once() {
  stamp=$state/stamps/$1 key=$2
  shift 2
  [ "$(cat "$stamp" 2>/dev/null)" != "$key" ] || return 0
  "$@"
  say "$key" >"$stamp"
}
