#!/usr/bin/env bash
# Runs the suites of the archive, the store and the synchronization under a sanitizer, the server's only under
# AddressSanitizer (docs/TESTING.md says why):
#   Scripts/sanitize.sh thread|address
# Builds into a folder of its own (.build-thread, .build-address), which takes about as long as a first build. Ends with
# status 1 if a test fails or something is reported.
set -euo pipefail
cd "$(dirname "$0")/.."
sanitizer=${1:-}
swift=${SWIFT:-swift}
suites="KeepsakeArchiveTests|KeepsakeStoreTests|KeepsakeSyncTests"
preload=
case $sanitizer in
  thread)
    # A contended Mutex is locked inside the standard library, where ThreadSanitizer doesn't see it.
    if [ "$(uname)" = Linux ]; then
      preload=$PWD/.build-$sanitizer/libmutex.so
      mkdir -p "${preload%/*}"
      toolchain=$(dirname "$(realpath "$(command -v "$swift")")")
      "$toolchain/clang" -shared -fPIC -O1 Scripts/shims/mutex.c -o "$preload"
    fi
    ;;
  # Leaks aren't looked for: what Foundation and the runtime keep until the process ends is reported as such.
  address)
    export ASAN_OPTIONS="detect_leaks=0 ${ASAN_OPTIONS:-}"
    suites+="|KeepsakeServerTests"
    ;;
  *) echo "usage: Scripts/sanitize.sh thread|address" >&2; exit 64 ;;
esac
flags=(--traits Cloud --sanitize="$sanitizer" --scratch-path ".build-$sanitizer")
log=.build-$sanitizer/sanitize.log
suites=${SUITES:-$suites}
export KEEPSAKE_SANITIZER=$sanitizer

Scripts/stage.sh "build for the $sanitizer sanitizer" "$swift" build "${flags[@]}" --build-tests
# As in Scripts/test.sh.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$(($(getconf _NPROCESSORS_ONLN) + 1))
status=0
Scripts/stage.sh "tests under the $sanitizer sanitizer" \
  bash -c 'set -o pipefail; "$@" 2>&1 | tee "$0"' "$log" \
  env LD_PRELOAD="$preload" "$swift" test "${flags[@]}" --skip-build --filter "$suites" || status=1
reports=$(grep -acE 'WARNING: ThreadSanitizer|ERROR: AddressSanitizer' "$log" || true)
if [ "$reports" -gt 0 ]; then
  grep -aE '^SUMMARY: (Thread|Address)Sanitizer' "$log" | sort | uniq -c | sort -rn
  status=1
fi
echo "$reports reports of the $sanitizer sanitizer"
exit $status
