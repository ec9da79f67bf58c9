#!/usr/bin/env bash
# What the compiler says of rules that don't fit their property: each must be refused, in the words that say what to do.
# The macro's own tests can't see types. Needs what `make build` built.
set -euo pipefail
cd "$(dirname "$0")/.."
build=.build/debug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# check KIND WORDS DECLARATION: the declaration is met with an error, a warning, or (ok) with nothing.
check() {
  local kind=$1 words=$2 declaration=$3
  printf 'import KeepsakeArchive\n%s\n' "$declaration" >"$work/game.swift"
  swiftc -typecheck -swift-version 6 -I $build/Modules \
    -load-plugin-executable "$build/KeepsakeMacros-tool#KeepsakeMacros" "$work/game.swift" >"$work/out" 2>&1 || true
  if [ "$kind" = ok ]; then
    if grep -qE "(error|warning):" "$work/out"; then
      echo "error or warning, but none was expected: $declaration"
      cat "$work/out"
      failures=$((failures + 1))
    fi
  elif ! grep -E "$kind:" "$work/out" | grep -qF -- "$words" ||
    { [ "$kind" = warning ] && grep -q "error:" "$work/out"; }; then
    echo "no $kind that contains \"$words\": $declaration"
    cat "$work/out"
    failures=$((failures + 1))
  fi
}

types='@Archivable struct Plain { var x = 1 }
@Archivable struct Named: Identifiable { let id: Int }
@Archivable final class Thing: Identifiable { var x = 1 }
'
check ok "" "$types @Archivable struct Game {
  @Merge(.max) var a = 1; @Merge(.min) var b: Double?; @Merge(.union) var c: Set<Int> = []
  @Merge(.union) var d: [Int: Plain] = [:]; @Merge(.counter) var e = Counter(); @Merge var f: [Named] = []
  @Merge var g: [String: Int] = [:]; @Merge var h: Set<Int>?; @Merge var i = Plain(); @Merge var j: Named?
  @Merge() var k: [Named]?; @Merge(combining: joined) var l = \"\"
  @Merge(combining: { (mine: Int, theirs: Int, ancestor: Int?) in mine + theirs - (ancestor ?? 0) }) var m = 0
  @Merge(combining: Game.joinedHere) var n: String?
  static func joinedHere(_ mine: String?, _ theirs: String?, _ ancestor: String??) -> String? { mine ?? theirs }
}
func joined(_ mine: String, _ theirs: String, _ ancestor: String?) -> String { mine + theirs }"
check error "@Merge(.max) needs a Comparable type" "$types @Archivable struct Game { @Merge(.max) var x = Plain() }"
check error "@Merge(.min) needs a Comparable type" "$types @Archivable struct Game { @Merge(.min) var x: Plain? }"
check error "@Merge(.union) needs a Set or a Dictionary" \
  "$types @Archivable struct Game { @Merge(.union) var x: [Named] = [] }"
check error "@Merge(.counter) needs the type Counter" "@Archivable struct Game { @Merge(.counter) var x = 0 }"
longer="func longer(_ a: String, _ b: String, _ c: String?) -> String { a }"
check error "@Merge(combining:) needs a function of this side's value" \
  "$longer ; @Archivable struct Game { @Merge(combining: longer) var x = 0 }"
check error "isn't saved, so there is nothing to merge" "@Archivable struct Game { @Unsaved @Merge(.max) var x = 0 }"
check warning "because its elements aren't Identifiable" "$types @Archivable struct Game { @Merge var x: [Plain] = [] }"
check warning "because its elements aren't Identifiable" "$types @Archivable struct Game { @Merge var x: [Plain]? }"
check warning "because its objects are identified by their addresses" \
  "$types @Archivable struct Game { @Merge var x: [Thing] = [] }"
[ $failures = 0 ]
