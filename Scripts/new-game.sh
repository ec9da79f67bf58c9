#!/usr/bin/env bash
# Builds and runs a game of its own that depends on Keepsake, the first example in the README with the file of the
# article "Tables", and checks that it had to fetch nothing that only the server or the command needs. Then runs the
# game's own tests of its saves and tables. Before that it follows the article "Your first ten minutes": after each
# step, the package manager must accept the package.
set -euo pipefail
cd "$(dirname "$0")/../Tests/NewGame"
scratch=../../.build/new-game
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

articles=../../Sources/Keepsake/Documentation.docc
# block FILE TEXT: the first block of Swift in the document that contains the text.
block() {
  awk -v wanted="$2" '
    /^```swift/ {on = 1; code = ""; next}
    /^```/ {if (on && index(code, wanted)) {printf "%s", code; exit} on = 0}
    on {code = code $0 "\n"}' "$1"
}

# The game is what the documents show: a difference fails.
mkdir -p "$scratch"
same() {
  block "$1" "$2" > "$scratch.shown"
  diff -u "$scratch.shown" "$3" || {
    echo "$(basename "$1") and Tests/NewGame/$3 differ." >&2
    exit 1
  }
}
same ../../README.md "GameData.open" Sources/NewGame/main.swift
same $articles/Tables.md "import KeepsakeRecords" Sources/NewGame/Creatures.swift

# The article's package, step by step, beside a folder "keepsake" as the article says.
article=$articles/FirstTenMinutes.md
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
block $article "import PackageDescription" > "$game/Package.swift"
block $article "GameData.open" > "$game/Sources/MyGame/main.swift"
accepted 2
block $article ".testTarget" > "$data/target"
awk -v target="$data/target" '{print} /\.executableTarget/ {while ((getline line < target) > 0) print line}' \
  "$game/Package.swift" > "$data/manifest"
mv "$data/manifest" "$game/Package.swift"
mkdir -p "$game/Tests/MyGameTests"
block $article "import KeepsakeTesting" > "$game/Tests/MyGameTests/SaveTests.swift"
accepted 4
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

# Tests of its saves, with two devices and a cloud in their process, and of its tables.
tested=$(swift test --scratch-path "$scratch" --skip-build 2>&1) || { echo "$tested" >&2; exit 1; }
grep -q 'Test run with 2 tests.* passed' <<< "$tested" || {
  echo "$tested" >&2
  echo "The game's own tests did not run." >&2
  exit 1
}
echo "its own tests with KeepsakeTesting passed"
