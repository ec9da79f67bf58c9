#!/usr/bin/env bash
# Everything that is checked, in stages; the closing line counts the tests. Called by `make test`, which has built all.
set -euo pipefail
cd "$(dirname "$0")/.."
log=.build/test.log
keepsake=.build/debug/keepsake
extra=0
: > "$log"

# Runs a stage of tests; where one fails its name comes last, where a log that was cut short still has it.
tests() {
  local name=$1
  shift
  Scripts/stage.sh "$name" bash -c "set -o pipefail; swift test --traits Cloud --skip-build $* 2>&1 | tee -a $log" && return
  echo "== what failed:"
  grep -aE '✘ (Test|Suite)|recorded an issue|[Ff]atal error|terminated by signal|unexpected signal' "$log" | grep -av 'known issue' | cut -c1-600 | tail -n 40
  exit 1
}

# What talks to servers, or to a cloud in the process, waits for others most of the time; beside tests that keep every thread busy it would wait for those.
network="KeepsakeServerTests|KeepsakeSyncTests|KeepsakeCommandTests|KeepsakeTestingTests"
tests "tests with servers" --filter "'$network'"
tests "unit tests and simulation" --skip "'$network'"

# One more test for each check outside the test runner: they end this script if they fail.
Scripts/stage.sh "a game of its own" Scripts/new-game.sh
Scripts/stage.sh "merge rules that don't fit" Scripts/merge-refusals.sh
extra=$((extra + 2))
space=.build/debug/Space
Scripts/stage.sh "Space is played" python3 Scripts/space-play.py --space $space
Scripts/stage.sh "every end of a game" python3 Scripts/autosave-stops.py --space $space --count 5
# What ships with it is what its manifest says.
$keepsake assets manifest Examples/Space/Assets --check
extra=$((extra + 3))
if [ -d "${KEEPSAKE_CORPUS:-}" ]; then
  Scripts/stage.sh "real saves through keepsake sync" python3 Scripts/sync-series.py --keepsake $keepsake
  Scripts/stage.sh "keepsake sync under SIGKILL" python3 Scripts/sync-torture.py --keepsake $keepsake --kills "${KEEPSAKE_KILLS:-200}"
  extra=$((extra + 2))
  skipped=0
else
  echo "skipped: real saves through keepsake sync, keepsake sync under SIGKILL (set KEEPSAKE_CORPUS to a folder of real saves)"
  skipped=2
fi

counted=$(sed -nE 's/.*Test run with ([0-9]+) tests?.* passed.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
[ "$counted" -gt 0 ] || { echo "no test ran" >&2; exit 1; }
echo "$((counted + extra)) passed, 0 failed, $skipped skipped"
