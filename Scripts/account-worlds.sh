#!/usr/bin/env bash
# Worlds of accounts (AccountSwarmTests) in numbers, played by code that is built for release in a folder of its own.
#
#   Scripts/account-worlds.sh [WORLDS] [FIRST SEED]
#
# Two processes at a time play at most 2,500 of them each, in a database of its own; the chunks are of even size. Ends
# with the number of worlds played, or with what the first bad one showed.
set -euo pipefail
cd "$(dirname "$0")/.."
worlds=${1:-50000}
first=${2:-1}
rounds=$(((worlds + 4999) / 5000))
step=$(((worlds + 2 * rounds - 1) / (2 * rounds)))
export KEEPSAKE_PLAIN_TESTS=1
swift=${SWIFT:-swift}
build=(--scratch-path .build-worlds -c release -Xswiftc -enable-testing --traits Cloud)
Scripts/stage.sh "build the tests for release" "$swift" build "${build[@]}" --build-tests
tests=$("$swift" build "${build[@]}" --show-bin-path)/keepsakePackageTests.xctest

play() {
  KEEPSAKE_FIRST_ACCOUNT_WORLD=$1 KEEPSAKE_ACCOUNT_WORLDS=$2 "$tests" --testing-library swift-testing \
    --filter AccountSwarmTests >"$log/$1" 2>&1 || {
    cat "$log/$1"
    return 255
  }
  echo "worlds $1 to $(($1 + $2 - 1)): clean"
}
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
export -f play
export tests log
last=$((first + worlds - 1))
for ((seed = first; seed <= last; seed += step)); do
  echo "$seed $((last - seed + 1 < step ? last - seed + 1 : step))"
done | xargs -P 2 -L 1 bash -c 'play "$@"' play
echo "$worlds worlds of accounts: clean"
