#!/usr/bin/env bash
# Builds the fuzz targets of Fuzz/ and runs them: all, or those that are named. A finding ends it with status 1; the
# input that led to it stays in .build/fuzz/findings.
#   RUNS=n       executions of each target, 10 million unless told otherwise
#   SECONDS_EACH=n  ends each target after that long, whatever it has done
#   JOBS=n       targets side by side, 2 unless told otherwise
#   KEEPSAKE_CORPUS=folder  real files besides the seeds, for the targets of Fuzz/Interchange
#   Scripts/fuzz.sh coverage   after a run: which lines of the readers the inputs found so far reach
#   Scripts/fuzz.sh show FILE  what an input holds, before and after decoding
set -euo pipefail
cd "$(dirname "$0")/.."
archive=(reader changed tree)
interchange=(propertyList keyedArchive)
messages=(exchangeJSON exchangeBody)
all=("${archive[@]}" "${interchange[@]}" "${messages[@]}")
out=.build/fuzz
plugin=.build/debug/KeepsakeMacros-tool
crashers=Tests/KeepsakeArchiveTests/Fixtures/crashers
common=(-swift-version 6 -parse-as-library -enable-upcoming-feature ExistentialAny
  -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility)
flags=("${common[@]}" -module-name KeepsakeArchive -package-name keepsake
  -load-plugin-executable "$plugin#KeepsakeMacros")
mkdir -p $out/seeds $out/seeds-interchange $out/findings
corpus=()
if [ -n "${KEEPSAKE_CORPUS:-}" ]; then corpus=("$KEEPSAKE_CORPUS"/{bplist_ok,bplist_bad,nskeyed}); fi

# compile OUTPUT arguments...: shows errors only;
# the linker, and files that import the module they are part of, warn a lot.
compile() {
  local output=$1
  shift
  if ! swiftc "$@" -o "$output" >$out/build.log 2>&1; then
    grep -A 3 "error:" $out/build.log >&2 || cat $out/build.log >&2
    exit 1
  fi
}

# The reader, inspecting and the targets are one module: that runs faster, and the targets can repair what they alter
# with the reader's own means. (What only re-exports the archive's module can't be a part of that module.)
sources() {
  find Sources/KeepsakeArchive Sources/KeepsakeInspection Fuzz -name '*.swift' -not -path 'Fuzz/Interchange/*' \
    -not -path 'Fuzz/Exchange/*' -not -name KeepsakeInspection.swift | sort | grep -v "$@"
}
interchangeSources() {
  find Sources/KeepsakeInterchange Fuzz/Interchange Fuzz/MemoryWatch.swift -name '*.swift' | sort | grep -v "$@"
}
# Messages between devices and clouds, with the server's count of what decoding will cost.
messageSources() {
  find Sources/KeepsakeReplication Sources/KeepsakeServer/Limits/JSONScan.swift Fuzz/Exchange Fuzz/MemoryWatch.swift \
    -name '*.swift' | sort | grep -v "$@"
}

isOld() {
  [ ! -x "$1" ] ||
    [ -n "$(find Sources/Keepsake{Archive,Inspection,Interchange,Replication} Sources/KeepsakeServer/Limits \
      Fuzz $plugin -newer "$1" -print -quit)" ]
}
isInterchange() { [[ " ${interchange[*]} " = *" $1 "* ]]; }
isMessage() { [[ " ${messages[*]} " = *" $1 "* ]]; }

# What this run is about: only that is compiled.
case ${1:-} in
  "" | coverage) targets=("${all[@]}") ;;
  show) targets=("${archive[@]}") ;;
  *) targets=("$@") ;;
esac
for target in "${targets[@]}"; do
  if [[ " ${all[*]} " != *" $target "* ]]; then
    echo "fuzz.sh: there is no target $target; there are ${all[*]}" >&2
    exit 2
  fi
done
# isWanted TARGET...: whether one of them is among this run's.
isWanted() {
  local one
  for one; do
    if [[ " ${targets[*]} " = *" $one "* ]]; then return 0; fi
  done
  return 1
}

# first TARGET: the folders with its first inputs.
first() {
  if isInterchange "$1"; then
    echo $out/seeds-interchange "${corpus[@]}"
  elif isMessage "$1"; then
    echo "$out/seeds-messages/$1"
  else
    echo $out/seeds $crashers
  fi
}

for target in KeepsakeArchive KeepsakeReplication; do
  # With the traits of the tests, which are in the same build, and as the Makefile builds.
  SWIFT_DETERMINISTIC_HASHING=1 swift build ${TRAITS:---traits Cloud} --target $target >$out/build.log 2>&1 ||
    { cat $out/build.log >&2; exit 1; }
done
# The readers of other programs' files are a module of their own, with their targets; the archive is used as it was
# built, without the objects of files that are gone. The package manager calls a package by its folder.
interchangeFlags=("${common[@]}" -module-name KeepsakeInterchange
  -package-name "$(basename "$PWD" | tr 'A-Z.-' 'a-z__')"
  -load-plugin-executable "$plugin#KeepsakeMacros" -I .build/debug/Modules
  $(find Sources/KeepsakeArchive -name '*.swift' | sed 's|.*/|.build/debug/KeepsakeArchive.build/|; s|$|.o|'))
# The cryptography that messages are hashed with is used as it was built.
messageFlags=("${common[@]}" -D Cloud -lstdc++ -module-name KeepsakeReplication -package-name keepsake
  -I .build/debug/Modules
  $(find .build/debug/{Crypto,CryptoBoringWrapper,CCryptoBoringSSL,CCryptoBoringSSLShims,CXKCP,CXKCPShims}.build \
    -name '*.o'))
if isWanted "${archive[@]}" && isOld $out/replay; then
  compile $out/replay "${flags[@]}" -Onone -profile-generate -profile-coverage-mapping \
    $(sources -e Fuzz/Entry -e Fuzz/Mutator -e Fuzz/MemoryWatch)
fi
if isWanted "${interchange[@]}" && isOld $out/replay-interchange; then
  compile $out/replay-interchange "${interchangeFlags[@]}" -Onone -profile-generate -profile-coverage-mapping \
    $(interchangeSources -e InterchangeEntry -e Fuzz/MemoryWatch)
fi
if isWanted "${messages[@]}" && isOld $out/replay-messages; then
  compile $out/replay-messages "${messageFlags[@]}" -Onone -profile-generate -profile-coverage-mapping \
    $(messageSources -e MessageEntry -e Fuzz/MemoryWatch)
fi
export LLVM_PROFILE_FILE=/dev/null
if isWanted "${archive[@]}"; then $out/replay seeds $out/seeds; fi
if isWanted "${interchange[@]}"; then $out/replay-interchange seeds $out/seeds-interchange; fi
if isWanted "${messages[@]}"; then
  $out/replay-messages seeds Tests/KeepsakeReplicationTests/Fixtures/v1 $out/seeds-messages
fi

if [ "${1:-}" = show ]; then
  $out/replay "$@"
  exit
fi

# report NAME FOLDER REPLAY TARGET...: what the targets' inputs reach of the sources in the folder.
report() {
  local name=$1 folder=$2 replay=$3 profiles=()
  shift 3
  for target in "$@"; do
    mkdir -p $out/corpus/$target
    LLVM_PROFILE_FILE=$out/$target.profraw $replay $target $out/corpus/$target $(first $target)
    profiles+=($out/$target.profraw)
  done
  llvm-profdata merge -o $out/$name.profdata "${profiles[@]}"
  llvm-cov report $replay -instr-profile=$out/$name.profdata -show-region-summary=false -show-functions=false \
    $(find $folder -name '*.swift' | sort)
}

if [ "${1:-}" = coverage ]; then
  # The tools must be of the compiler's own version.
  PATH=$(dirname "$(readlink -f "$(command -v swiftc)")"):$PATH
  report fuzz "Sources/KeepsakeArchive Sources/KeepsakeInspection" $out/replay "${archive[@]}" >$out/coverage.txt
  report interchange Sources/KeepsakeInterchange $out/replay-interchange "${interchange[@]}" >>$out/coverage.txt
  report messages Sources/KeepsakeReplication $out/replay-messages "${messages[@]}" >>$out/coverage.txt
  cat $out/coverage.txt
  exit
fi

if isWanted "${archive[@]}" && isOld $out/fuzz; then
  compile $out/fuzz "${flags[@]}" -O -wmo -sanitize=fuzzer,address $(sources -e Fuzz/Replay -e Fuzz/Seeds)
fi
if isWanted "${interchange[@]}" && isOld $out/fuzz-interchange; then
  compile $out/fuzz-interchange "${interchangeFlags[@]}" -O -wmo -sanitize=fuzzer,address \
    $(interchangeSources -e InterchangeReplay -e InterchangeSeeds)
fi
if isWanted "${messages[@]}" && isOld $out/fuzz-messages; then
  compile $out/fuzz-messages "${messageFlags[@]}" -O -wmo -sanitize=fuzzer,address \
    $(messageSources -e MessageReplay)
fi

# run TARGET: leaves its log, prints the closing figures.
run() {
  local started=$SECONDS status=0 binary=$out/fuzz
  local longest=4096
  if isInterchange "$1"; then binary=$out/fuzz-interchange; fi
  if isMessage "$1"; then binary=$out/fuzz-messages longest=8192; fi
  mkdir -p $out/corpus/$1
  # Graphs that are given up half-way are cut by the targets,
  # so that what leaked would show as memory that the process takes.
  FUZZ_TARGET=$1 SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=2:detect_leaks=0 \
    $binary $out/corpus/$1 $(first "$1") -runs="${RUNS:-10000000}" ${SECONDS_EACH:+-max_total_time=$SECONDS_EACH} \
    -max_len=$longest -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=32 -print_final_stats=1 \
    -artifact_prefix=$out/findings/$1- >$out/$1.log 2>&1 || status=1
  local executed
  executed=$(sed -nE 's/^stat::number_of_executed_units: *//p' $out/$1.log)
  grep -a -E "Fatal error|ERROR:|SUMMARY|Test unit written" $out/$1.log | cut -c 1-300 || true
  echo "$1: ${executed:-0} executions, $((SECONDS - started)) s, $(find $out/corpus/$1 -type f | wc -l) inputs kept," \
    "$(sed -nE 's/^stat::peak_rss_mb: *//p' $out/$1.log) MB at most," \
    "$([ $status = 0 ] && echo no finding || echo A FINDING)"
  return $status
}

status=0
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-2}" ]; do wait -n || status=1; done
  run "$target" &
done
while [ -n "$(jobs -p)" ]; do wait -n || status=1; done
exit $status
