#!/usr/bin/env bash
# Everything that is checked, in stages; the closing line counts the tests. Called by `make test`, and with
# KEEPSAKE_DEEP=1 by `make test-deep`, which have built all.
set -euo pipefail
cd "$(dirname "$0")/.."
log=.build/test.log
keepsake=.build/debug/keepsake
deep=${KEEPSAKE_DEEP:-0}
# Those with which all was built.
traits=${TRAITS:---traits Cloud}
passed=0
missed=()
: > "$log"

# tests NAME WIDTH ARGUMENTS...: a stage of tests, so many at once. Where one fails its name comes last, where a log
# that was cut short still has it.
tests() {
  local name=$1 width=$2
  shift 2
  export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$width
  Scripts/stage.sh "$name" Scripts/with-postgres.sh Scripts/with-s3.sh \
    bash -c "set -o pipefail; swift test $traits --skip-build $* 2>&1 | tee -a $log" && return
  echo "== what failed:"
  grep -aE '✘ (Test|Suite)|recorded an issue|[Ff]atal error|terminated by signal|unexpected signal' "$log" |
    grep -av 'known issue' | cut -c1-600 | tail -n 40
  exit 1
}

# check NAME COMMAND...: a check outside the test runner counts as one test. It ends this script if it fails.
check() {
  Scripts/stage.sh "$@"
  passed=$((passed + 1))
}

# miss NAME REASON: a check that is skipped.
miss() { missed+=("$1: $2"); }

# Most tests keep a core busy: more at once would only make each of them take longer. Now and then one waits for its
# disk or for a process, which leaves room for one more.
cores=$(getconf _NPROCESSORS_ONLN)
# What talks to servers, or to a cloud in the process, waits most of the time.
network="KeepsakeServerTests|KeepsakeSyncTests|KeepsakeCommandTests|KeepsakeTestingTests"
tests "tests with servers" $((cores * 4)) --filter "'$network'"
# Again, with servers whose data is in PostgreSQL.
case $traits$(Scripts/with-postgres.sh sh -c 'echo "${KEEPSAKE_POSTGRES:+ is there}"' 2>/dev/null) in
  *PostgreSQL" is there")
    on_postgres="TwoDevices|Join|Leaving|Recovery|RecoveryTrouble|EndedStreams|BankRoute|SignIn|IdentityRoute|OnDemand"
    on_postgres="$on_postgres|FilesAndLocalSlots|Quiet|UploadParts|ForeignClient|MoneyKill|TokenRenewal"
    on_postgres="$on_postgres|AdminAccess|AdminIdentity|AdminPlayer|AdminSave|ForgedSave|Erasure|WebhookServer"
    KEEPSAKE_CLOUDS=PostgreSQL tests "servers on PostgreSQL" $((cores * 4)) \
      --filter "'KeepsakeServerTests.($on_postgres)Tests'" --filter FaultMatrixTests/broken
    # And with one that stands for another database of its family.
    on_others="CloudStorage|AccountSwarm|SharedStorage|PostgreSQLNodes|TwoDevices|Join|Recovery|EndedStreams|BankRoute"
    on_others="$on_others|SignIn|OnDemand|FilesAndLocalSlots|Quiet|ForeignClient|TokenRenewal|PackedStorage"
    on_others="$on_others|WebhookOutbox|PostgreSQLWebhook"
    KEEPSAKE_CLOUDS=PostgreSQL KEEPSAKE_POSTGRES_STAND_IN=1 tests "servers on another database" $((cores * 4)) \
      --filter "'KeepsakeServerTests.($on_others)Tests'" --filter FaultMatrixTests/broken
    KEEPSAKE_POSTGRES_KILLS=$([ "$deep" = 1 ] && echo 300 || echo 6) tests "PostgreSQL is killed" $((cores * 4)) \
      --filter PostgreSQLKillTests
    ;;
  *) miss "servers on PostgreSQL" "there is no PostgreSQL server, or it isn't built" ;;
esac
tests "unit tests and simulation" $((cores + 1)) --skip "'$network'"

# The checks that follow wait for processes most of the time: beside them, another game is built and played.
game_log=.build/new-game.log
if [ "$deep" = 1 ]; then
  set -m
  Scripts/stage.sh "a game of its own" Scripts/new-game.sh > "$game_log" 2>&1 &
  game=$!
  set +m
  trap 'kill -- "-$game" 2>/dev/null || true' EXIT
fi

# Where no database is, the rest runs.
without=$(KEEPSAKE_SERVERS=0 KEEPSAKE_POSTGRES_PROGRAMS=/nowhere Scripts/with-postgres.sh \
  sh -c 'echo "ran${KEEPSAKE_POSTGRES:-}"' 2>/dev/null)
check "without PostgreSQL" test "$without" = ran
without=$(KEEPSAKE_SERVERS=0 KEEPSAKE_S3_PROGRAMS=/nowhere Scripts/with-s3.sh \
  sh -c 'echo "ran${KEEPSAKE_S3:-}"' 2>/dev/null)
check "without S3" test "$without" = ran
[ "${traits%PostgreSQL}" != "$traits" ] || miss "PostgreSQL" "its client library isn't installed"
check "the demo" $keepsake demo
check "mistakes to plant" python3 Scripts/mutants.py --check
check "parts for other systems" python3 Scripts/check-platforms.py --plant
space=.build/debug/Space
check "what the compiler says of mistakes" python3 Scripts/macro-refusals.py --build .build/debug \
  $([ "$deep" = 1 ] && echo --all)
check "Space is played" python3 Scripts/space-play.py --space $space
if [ -x "$(PATH=$PATH:/usr/games command -v moria)" ]; then
  check "a game under keepsake wrap" python3 Scripts/wrap-play.py --keepsake $keepsake
else
  miss "a game under keepsake wrap" "Moria isn't installed (apt-get install moria)"
fi
check "every end of a game" python3 Scripts/autosave-stops.py --space $space \
  --count "$([ "$deep" = 1 ] && echo 10 || echo 2)"
# What ships with it is what its manifest says.
check "the manifest of Space" $keepsake assets manifest Examples/Space/Assets --check
# Files that no program wrote, whose conversions lose as much as can be.
check "random keyed archives with --lossy" python3 Scripts/check-keyed.py --keepsake $keepsake --lossy \
  --random "$([ "$deep" = 1 ] && echo 1000 || echo 60)"
if [ -d "${KEEPSAKE_CORPUS:-}" ]; then
  check "keyed archives through JSON and back" python3 Scripts/check-keyed.py --keepsake $keepsake \
    "$KEEPSAKE_CORPUS/nskeyed"
  check "keyed archives with --lossy" python3 Scripts/check-keyed.py --keepsake $keepsake --lossy \
    "$KEEPSAKE_CORPUS/nskeyed"
  if [ "$deep" = 1 ]; then
    check "keyed archives through each pair of formats" python3 Scripts/check-keyed.py --keepsake $keepsake --pairs \
      "$KEEPSAKE_CORPUS/nskeyed"
  fi
  check "real saves through keepsake sync" python3 Scripts/sync-series.py --keepsake $keepsake
  check "keepsake sync under SIGKILL" python3 Scripts/sync-torture.py --keepsake $keepsake \
    --kills "${KEEPSAKE_KILLS:-$([ "$deep" = 1 ] && echo 200 || echo 20)}"
else
  for name in "keyed archives through JSON and back" "keyed archives with --lossy" \
    "real saves through keepsake sync" "keepsake sync under SIGKILL"; do
    miss "$name" "KEEPSAKE_CORPUS doesn't name a folder of real saves"
  done
fi

if [ "$deep" = 1 ]; then
  wait "$game" || { cat "$game_log"; exit 1; }
  trap - EXIT
  tail -n 5 "$game_log"
  passed=$((passed + 1))
else
  miss "a game of its own" "it builds everything that a game fetches again; make test-deep runs it"
fi

# What the test runner says itself. Its count of a run includes what it skipped, and tests that others run in a process
# of their own are counted where they are run from.
ran=$(sed -nE 's/.*Test run with ([0-9]+) tests?.* passed.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
skips=$(grep -aE '^[^ ]+ +Test .* skipped(\.|: )' "$log" || true)
unrun=$(grep -c . <<< "$skips" || true)
[ "$ran" -gt "$unrun" ] || { echo "no test ran" >&2; exit 1; }
passed=$((passed + ran - unrun))
while IFS= read -r line; do
  case $line in "" | *'skipped: "part of another test'*) continue ;; esac
  missed+=("$(sed -E 's/^[^ ]+ +Test "?(.*[^"])"? skipped(: "(.*)")?\.?$/\1: \3/' <<< "$line")")
done <<< "$skips"
for line in ${missed[@]+"${missed[@]}"}; do echo "skipped: $line"; done
echo "$passed passed, 0 failed, ${#missed[@]} skipped"
