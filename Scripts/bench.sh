#!/usr/bin/env bash
# Builds the benchmarks in release (swift-syntax alone takes minutes the first time) and runs them.
#   Scripts/bench.sh --write    also puts the figures into the documents and draws the plot
# Other options go to the program: --filter TEXT, --rounds N, --json, --check; --help lists them.
#
# The Swift code of Benchmarks/Protos was made once, and is committed:
#   protoc --swift_opt=Visibility=Internal --swift_out=Sources/Peers --proto_path=Protos worlds.proto
# with protoc-gen-swift of the swift-protobuf version that Package.swift names.
set -euo pipefail
cd "$(dirname "$0")/../Benchmarks"
Scripts=../Scripts
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
$Scripts/stage.sh "build the benchmarks in release" swift build -c release --product ArchiveBenchmark >&2

# Protocol Buffers' C++ encoder takes part where it is installed (Debian: protobuf-compiler, libprotobuf-dev, pkg-config, g++).
build_protobuf() {
  local out=.build/optional
  mkdir -p "$out"
  protoc --proto_path=Protos --cpp_out="$out" worlds.proto &&
    g++ -std=c++17 -O2 -shared -fPIC -I"$out" -ISources/CPeers/include -o "$out/libprotobuf-peer.so" \
      Optional/ProtobufPeer.cpp "$out/worlds.pb.cc" $(pkg-config --cflags --libs protobuf)
}
if command -v protoc >/dev/null && command -v g++ >/dev/null && pkg-config --exists protobuf 2>/dev/null; then
  if build_protobuf >&2; then arguments+=(--protobuf .build/optional/libprotobuf-peer.so); fi
fi

.build/release/ArchiveBenchmark --compiler "$(swift --version 2>/dev/null | head -n 1)" ${arguments[@]+"${arguments[@]}"}
