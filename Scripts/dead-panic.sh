#!/usr/bin/env bash
# Plays a night of DeadPanic whole, and the same night in pieces, a process each; the ends have to be the same.
#   Scripts/dead-panic.sh [SEED]
set -euo pipefail
cd "$(dirname "$0")/.."
seed=${1:-7}
game=.build/debug/DeadPanic
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

echo "The night in one piece:"
$game --data "$data/whole" --seed "$seed" | tee "$data/whole.txt"
echo
echo "The same night, 60 ticks at a time:"
while :; do
  $game --data "$data/pieces" --seed "$seed" --ticks 60 >"$data/piece.txt"
  grep '^tick' "$data/piece.txt"
  grep -q '^Stopped' "$data/piece.txt" || break
done
# Without the line that says that it continued.
grep -v '^The night continues' "$data/piece.txt" >"$data/pieces.txt"
# Sparks aren't saved: a piece of a tick or two may have fewer of them.
diff <(tr -d "'" <"$data/whole.txt" | tr -s ' ') <(tr -d "'" <"$data/pieces.txt" | tr -s ' ') ||
  { echo "The night in pieces ended differently." >&2; exit 1; }
echo
echo "Both nights ended the same way."
