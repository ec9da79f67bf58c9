#!/usr/bin/env bash
# Builds and runs a game of its own that depends on Keepsake, made of the twelve lines in the README, and checks that it
# had to fetch nothing that only the server or the command needs. Then runs the game's own test of its saves.
set -euo pipefail
cd "$(dirname "$0")/../Tests/NewGame"
scratch=../../.build/new-game
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

# The twelve lines are the README's own: a difference fails.
awk '/^```swift/ {on = 1; next} /^```/ {if (on) exit} on' ../../README.md > "$scratch.readme"
diff -u "$scratch.readme" Sources/NewGame/main.swift || { echo "The README's first example and Tests/NewGame differ." >&2; exit 1; }

# Without this the package manager doesn't notice files that came or went in the package above.
touch Package.swift
swift build --scratch-path "$scratch" --build-tests
fetched=$(cd "$scratch/checkouts" && ls | sort | tr '\n' ' ')
expected="GRDB.swift swift-asn1 swift-crypto swift-syntax "
[ "$fetched" = "$expected" ] || { echo "A game fetches: $fetched; expected: $expected" >&2; exit 1; }
echo "A game that depends on Keepsake fetches: $fetched"

# Played twice: the second run goes on where the first one stopped.
export XDG_DATA_HOME="$data"
first=$("$scratch/debug/NewGame")
second=$("$scratch/debug/NewGame")
echo "first run:  $first"
echo "second run: $second"
[ "$first" = "level 2" ] && [ "$second" = "level 3" ] || { echo "The second run did not continue from the first." >&2; exit 1; }

# A test of its saves, with two devices and a cloud in its process.
tested=$(swift test --scratch-path "$scratch" --skip-build 2>&1) || { echo "$tested" >&2; exit 1; }
grep -q 'Test run with 1 test.* passed' <<< "$tested" || { echo "$tested" >&2; echo "The game's own test did not run." >&2; exit 1; }
echo "its own test with KeepsakeTesting passed"
