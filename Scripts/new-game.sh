#!/usr/bin/env bash
# Builds and runs a game of its own that depends on Keepsake, the first example in the README, and checks that it had to
# fetch nothing that only the server or the command needs. Then runs the game's own test of its saves. Before
# that it follows the article "Your first ten minutes": after each step, the package manager must accept the package.
set -euo pipefail
cd "$(dirname "$0")/../Tests/NewGame"
scratch=../../.build/new-game
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

# The game is the README's own: a difference fails.
awk '/^```swift/ {on = 1; next} /^```/ {if (on) exit} on' ../../README.md > "$scratch.readme"
diff -u "$scratch.readme" Sources/NewGame/main.swift || {
  echo "The README's first example and Tests/NewGame differ." >&2
  exit 1
}

# The article's package, step by step, beside a folder "keepsake" as the article says.
article=../../Sources/Keepsake/Documentation.docc/FirstTenMinutes.md
block() { awk -v wanted="$1" '/^```swift/ {number++; on = 1; next} /^```/ {on = 0} on && number == wanted' "$article"; }
ln -s "$(cd ../.. && pwd)" "$data/keepsake"
game="$data/MyGame"
accepted() {
  local output
  output=$(swift package --package-path "$game" describe 2>&1) || {
    echo "$output" >&2
    echo "First ten minutes: step $1 fails." >&2
    exit 1
  }
}
mkdir -p "$game/Sources/MyGame"
block 1 > "$game/Package.swift"
block 2 > "$game/Sources/MyGame/main.swift"
accepted 2
block 3 > "$data/target"
awk -v target="$data/target" '{print} /\.executableTarget/ {while ((getline line < target) > 0) print line}' \
  "$game/Package.swift" > "$data/manifest"
mv "$data/manifest" "$game/Package.swift"
mkdir -p "$game/Tests/MyGameTests"
block 4 > "$game/Tests/MyGameTests/SaveTests.swift"
accepted 3
echo "the package of the first ten minutes is accepted after each step"

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
[ "$first" = "level 2" ] && [ "$second" = "level 3" ] || {
  echo "The second run did not continue from the first." >&2
  exit 1
}

# A test of its saves, with two devices and a cloud in its process.
tested=$(swift test --scratch-path "$scratch" --skip-build 2>&1) || { echo "$tested" >&2; exit 1; }
grep -q 'Test run with 1 test.* passed' <<< "$tested" || {
  echo "$tested" >&2
  echo "The game's own test did not run." >&2
  exit 1
}
echo "its own test with KeepsakeTesting passed"
