#!/usr/bin/env bash
# Builds the benchmarks in release (swift-syntax alone takes minutes the first time) and runs them: the archive's, the
# store's, those of preferences and assets, files beside records, other programs' files, and syncing.
#   Scripts/bench.sh archive, store, preferences, assets, records, interchange or sync: only one of them
#   Scripts/bench.sh --write    also puts the figures into the documents and draws the plots
# Other options go to the programs, so they are best given with one of them: --filter TEXT, --rounds N, --json, --check;
# --help lists them. Syncing also builds the command in release, which is the cloud (some ten minutes the first time),
# and compares with the program zstd. The store's saves are watched from outside with strace where that is installed, to
# count how often they wait for the disk.
#
# The Swift code of Benchmarks/Protos was made once, and is committed:
#   protoc --swift_opt=Visibility=Internal --swift_out=Sources/GameWorlds/Peers --proto_path=Protos worlds.proto
# with protoc-gen-swift of the swift-protobuf version that Package.swift names.
set -euo pipefail
cd "$(dirname "$0")/../Benchmarks"
Scripts=../Scripts
parts=(archive store preferences assets records interchange sync)
case ${1:-} in
  archive | store | preferences | assets | records | interchange | sync)
    parts=("$1")
    shift
    ;;
esac
arguments=()
for argument in "$@"; do
  case $argument in
    --write) arguments+=(--write ..) ;;
    *) arguments+=("$argument") ;;
  esac
done

# Without this the package manager doesn't notice files that are new in the package above.
touch Package.swift
# Standard output is for the results.
products() {
  for part in "${parts[@]}"; do
    case $part in
      archive) echo ArchiveBenchmark ;;
      store) echo StoreBenchmark ;;
      preferences) echo PreferenceBenchmark ;;
      assets) echo AssetBenchmark ;;
      records) echo RecordsBenchmark ;;
      interchange) echo InterchangeBenchmark ;;
      sync) echo SyncBenchmark ;;
    esac
  done
}
for product in $(products); do
  $Scripts/stage.sh "build $product in release" swift build -c release --product "$product" >&2
done
compiler=$(swift --version 2>/dev/null | head -n 1)

run() { .build/release/"$1" --compiler "$compiler" ${arguments[@]+"${arguments[@]}"} "${@:2}"; }

# Protocol Buffers' C++ encoder takes part where it is installed
# (Debian: protobuf-compiler, libprotobuf-dev, pkg-config, g++).
build_protobuf() {
  local out=.build/optional
  mkdir -p "$out"
  protoc --proto_path=Protos --cpp_out="$out" worlds.proto &&
    g++ -std=c++17 -O2 -shared -fPIC -I"$out" -ISources/CPeers/include -o "$out/libprotobuf-peer.so" \
      Optional/ProtobufPeer.cpp "$out/worlds.pb.cc" $(pkg-config --cflags --libs protobuf)
}
for product in $(products); do
  if [ "$product" = SyncBenchmark ]; then
    traits=${TRAITS:---traits Cloud}
    # shellcheck disable=SC2086
    (cd .. && Scripts/stage.sh "build keepsake in release" swift build -c release $traits --product keepsake >&2)
    run SyncBenchmark --keepsake ../.build/release/keepsake
    if [ "${traits%PostgreSQL}" != "$traits" ]; then
      # Two servers over one database.
      KEEPSAKE_SERVERS=1 $Scripts/with-postgres.sh bash -c \
        '.build/release/SyncBenchmark --database "$KEEPSAKE_POSTGRES" "$@"' bash --compiler "$compiler" \
        --keepsake ../.build/release/keepsake ${arguments[@]+"${arguments[@]}"}
    fi
  elif [ "$product" != ArchiveBenchmark ]; then
    run "$product"
  elif command -v protoc >/dev/null && command -v g++ >/dev/null && pkg-config --exists protobuf 2>/dev/null &&
    build_protobuf >&2; then
    run ArchiveBenchmark --protobuf .build/optional/libprotobuf-peer.so
  else
    run ArchiveBenchmark
  fi
done
