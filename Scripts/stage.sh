#!/usr/bin/env bash
# Runs a command as a named stage and says how many minutes it took: stage.sh NAME COMMAND...
set -uo pipefail
name=$1
shift
started=$(date +%s)
"$@"
status=$?
took=$(( $(date +%s) - started ))
printf '== %s: %d.%d min%s\n' "$name" $((took / 60)) $((took % 60 / 6)) \
  "$([ $status -eq 0 ] || echo ", failed ($status)")"
exit $status
