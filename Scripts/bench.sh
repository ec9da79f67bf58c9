#!/usr/bin/env bash
# Builds the benchmarks in release (swift-syntax alone takes minutes the first time) and runs them, one after the other.
set -euo pipefail
cd "$(dirname "$0")/../Benchmarks"
Scripts=../Scripts
$Scripts/stage.sh "build the benchmarks in release" swift build -c release --product ArchiveBenchmark
.build/release/ArchiveBenchmark
