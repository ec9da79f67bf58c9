#!/usr/bin/env bash
# load.sh KEEPSAKE [SECONDS]: a server of the given command under load from 64 devices, with saves of 1 KB and 64 KB and
# with nothing to send, beside the bare upsert of the same bytes and a bare HTTP server. `make load` builds for release.
set -euo pipefail
keepsake=$1
seconds=${2:-10}
for size in 1K 64K; do
  echo "== saves of $size"
  "$keepsake" load --devices 64 --size "$size" --seconds "$seconds" --baselines
  echo
done
echo "== nothing to send"
"$keepsake" load --devices 64 --empty 1 --seconds "$seconds"
