#!/usr/bin/env bash
# Builds the fuzz targets of Fuzz/ and runs them: all, or those that are named. A finding ends it with status 1; the input that led to it
# stays in .build/fuzz/findings.
#   RUNS=n       executions of each target, 10 million unless told otherwise
#   SECONDS_EACH=n  ends each target after that long, whatever it has done
#   JOBS=n       targets side by side, 2 unless told otherwise
#   Scripts/fuzz.sh coverage   after a run: which lines of the reader the inputs found so far reach
#   Scripts/fuzz.sh show FILE  what an input holds, before and after decoding
set -euo pipefail
cd "$(dirname "$0")/.."
all=(reader changed tree)
out=.build/fuzz
plugin=.build/debug/KeepsakeMacros-tool
crashers=Tests/KeepsakeArchiveTests/Fixtures/crashers
flags=(-swift-version 6 -parse-as-library -module-name KeepsakeArchive -package-name keepsake -enable-upcoming-feature ExistentialAny
  -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility
  -load-plugin-executable "$plugin#KeepsakeMacros")
mkdir -p $out/seeds $out/findings

# compile OUTPUT flags... files...: shows errors only; the linker, and files that import the module they are part of, warn a lot.
compile() {
  local output=$1
  shift
  if ! swiftc "${flags[@]}" "$@" -o "$output" >$out/build.log 2>&1; then
    grep -A 3 "error:" $out/build.log >&2 || cat $out/build.log >&2
    exit 1
  fi
}

# The reader and the targets are one module: that runs faster, and the targets can repair what they alter with the reader's own means.
sources() { find Sources/KeepsakeArchive Fuzz -name '*.swift' | sort | grep -v "$@"; }

isOld() { [ ! -x "$1" ] || [ -n "$(find Sources/KeepsakeArchive Fuzz $plugin -newer "$1" -print -quit)" ]; }

swift build --traits Cloud --target KeepsakeArchive >$out/build.log 2>&1 || { cat $out/build.log >&2; exit 1; }
if isOld $out/replay; then
  compile $out/replay -Onone -profile-generate -profile-coverage-mapping $(sources -e Fuzz/Entry -e Fuzz/Mutator -e Fuzz/MemoryWatch)
fi
LLVM_PROFILE_FILE=/dev/null $out/replay seeds $out/seeds

if [ "${1:-}" = show ]; then
  LLVM_PROFILE_FILE=/dev/null $out/replay "$@"
  exit
fi

if [ "${1:-}" = coverage ]; then
  profiles=()
  for target in "${all[@]}"; do
    mkdir -p $out/corpus/$target
    LLVM_PROFILE_FILE=$out/$target.profraw $out/replay $target $out/corpus/$target $out/seeds $crashers
    profiles+=($out/$target.profraw)
  done
  # The tools must be of the compiler's own version.
  PATH=$(dirname "$(readlink -f "$(command -v swiftc)")"):$PATH
  llvm-profdata merge -o $out/fuzz.profdata "${profiles[@]}"
  llvm-cov report $out/replay -instr-profile=$out/fuzz.profdata -show-region-summary=false -show-functions=false \
    $(find Sources/KeepsakeArchive -name '*.swift' | sort) >$out/coverage.txt
  cat $out/coverage.txt
  exit
fi

if isOld $out/fuzz; then compile $out/fuzz -O -sanitize=fuzzer,address $(sources -e Fuzz/Replay -e Fuzz/Seeds); fi

# run TARGET: leaves its log, prints the closing figures.
run() {
  local started=$SECONDS status=0
  mkdir -p $out/corpus/$1
  # Graphs that are given up half-way are cut by the targets, so that what leaked would show as memory that the process takes.
  FUZZ_TARGET=$1 SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=2:detect_leaks=0 \
    $out/fuzz $out/corpus/$1 $out/seeds $crashers -runs="${RUNS:-10000000}" ${SECONDS_EACH:+-max_total_time=$SECONDS_EACH} \
    -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=32 -print_final_stats=1 \
    -artifact_prefix=$out/findings/$1- >$out/$1.log 2>&1 || status=1
  local executed
  executed=$(sed -nE 's/^stat::number_of_executed_units: *//p' $out/$1.log)
  grep -a -E "Fatal error|ERROR:|SUMMARY|Test unit written" $out/$1.log | cut -c 1-300 || true
  echo "$1: ${executed:-0} executions, $((SECONDS - started)) s, $(find $out/corpus/$1 -type f | wc -l) inputs kept," \
    "$(sed -nE 's/^stat::peak_rss_mb: *//p' $out/$1.log) MB at most, $([ $status = 0 ] && echo no finding || echo A FINDING)"
  return $status
}

status=0
for target in "${@:-${all[@]}}"; do
  for one in $target; do
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-2}" ]; do wait -n || status=1; done
    run "$one" &
  done
done
while [ -n "$(jobs -p)" ]; do wait -n || status=1; done
exit $status
