#!/usr/bin/env bash
# Builds the documentation of the product Keepsake into .build/docs with the toolchain's own docc.
set -euo pipefail
cd "$(dirname "$0")/.."
graphs=.build/symbol-graphs
rm -rf "$graphs" .build/docs
mkdir -p "$graphs"
# A build folder of its own: these flags would make the next test build begin anew.
swift build --scratch-path .build/docs-build --target Keepsake \
  -Xswiftc -emit-symbol-graph -Xswiftc -emit-symbol-graph-dir -Xswiftc "$PWD/$graphs"
for graph in "$graphs"/*; do
  case $(basename "$graph") in Keepsake*) ;; *) rm "$graph" ;; esac
done
docc=$(command -v docc || echo "$(dirname "$(readlink -f "$(command -v swift)")")/docc")
"$docc" convert Sources/Keepsake/Documentation.docc --additional-symbol-graph-dir "$graphs" --output-path .build/docs \
  --fallback-display-name Keepsake --fallback-bundle-identifier Keepsake --fallback-bundle-version 0.1
echo "Documentation: .build/docs"
