#!/usr/bin/env bash
# Builds the fuzz targets of Fuzz/ and runs them: reader, changed and tree, or those that are named. A finding ends it with status 1 and the
# input under .build/fuzz/findings.
#   RUNS=n       executions of each target, 10 million unless told otherwise (0: the corpus only)
#   SECONDS_EACH=n  stop each target after that long, whatever it has done
#   JOBS=n       processes side by side for each target, 1 unless told otherwise
#   Scripts/fuzz.sh coverage: which lines of the reader the corpus reaches, after a run
set -euo pipefail
cd "$(dirname "$0")/.."
out=.build/fuzz
plugin=.build/debug/KeepsakeMacros-tool
corpus=$out/corpus
runs=${RUNS:-10000000}
jobs=${JOBS:-1}
flags=(-swift-version 6 -parse-as-library -module-name KeepsakeArchive -enable-upcoming-feature ExistentialAny
  -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility
  -load-plugin-executable "$plugin#KeepsakeMacros")
mkdir -p $out $corpus $out/findings

# The reader and the targets are one module: half the calls, and the targets see what they repair.
sources() { find Sources/KeepsakeArchive Fuzz -name '*.swift' | sort; }

# compile OUTPUT flags... files...: only what matters of the output; the linker and the imports of the module into itself warn a lot.
compile() {
  local output=$1
  shift
  if ! swiftc "${flags[@]}" "$@" -o "$output" >$out/build.log 2>&1; then
    grep -A 3 "error:" $out/build.log >&2 || cat $out/build.log >&2
    exit 1
  fi
}

newer() { [ ! -x "$1" ] || [ -n "$(find Sources/KeepsakeArchive Fuzz $plugin -newer "$1" -print -quit)" ]; }

[ -x $plugin ] || swift build --product KeepsakeMacros >/dev/null

replay=$out/replay
if newer $replay; then
  compile $replay -Onone -profile-generate -profile-coverage-mapping \
    $(sources | grep -v -e Fuzz/Entry -e Fuzz/Mutator -e Fuzz/MemoryWatch)
fi
mkdir -p $out/seeds
LLVM_PROFILE_FILE=/dev/null $replay seeds $out/seeds

if [ "${1:-}" = coverage ]; then
  for target in reader changed tree; do
    LLVM_PROFILE_FILE=$out/$target.profraw $replay $target $corpus/$target $out/seeds Tests/KeepsakeArchiveTests/Fixtures/crashers
  done
  llvm-profdata merge -o $out/all.profdata $out/{reader,changed,tree}.profraw
  llvm-cov report $replay -instr-profile=$out/all.profdata $(find Sources/KeepsakeArchive -name '*.swift' | sort) |
    awk '/^File/ || /swift/ || /^TOTAL/ {n = NF; printf "%-48s %7s lines %6s missed %8s\n", $1, $8, $9, $10}' | tee $out/coverage.txt
  exit
fi

if newer $out/fuzz; then compile $out/fuzz -O -sanitize=fuzzer,address $(sources | grep -v -e Fuzz/Replay -e Fuzz/Seeds); fi

export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=quarantine_size_mb=8:detect_leaks=0:allocator_may_return_null=1
status=0
for target in "${@:-reader changed tree}"; do
  for target in $target; do
    mkdir -p $corpus/$target
    echo "$target"
    started=$(date +%s)
    FUZZ_TARGET=$target $out/fuzz $corpus/$target $out/seeds Tests/KeepsakeArchiveTests/Fixtures/crashers \
      -runs="$runs" ${SECONDS_EACH:+-max_total_time=$SECONDS_EACH} -max_len=4096 -len_control=20 -timeout=10 -rss_limit_mb=1024 \
      -malloc_limit_mb=32 -reload=1 -print_final_stats=1 -artifact_prefix=$out/findings/$target- >$out/$target.log 2>&1 || status=1
    grep -a -E "stat::|SUMMARY|ERROR|Fatal error|Test unit written|DONE" $out/$target.log || true
    echo "$target: $(($(date +%s) - started)) s"
  done
done
exit $status
