#!/usr/bin/env bash
# follow-operations.sh KEEPSAKE: runs the blocks of docs/OPERATIONS.md that are marked `sh`, as they stand and in their
# order, in an empty folder with the given command as `keepsake` in the path. Ends with the status of the first that
# fails. What the document starts is ended with it.
#
# The document's own certificate is trusted in a copy of the system's list that only these commands see (in a private
# mount): Foundation on Linux takes no other list.
set -euo pipefail
if [ "${2:-}" != private ]; then
  exec unshare --user --map-root-user --mount --propagation private bash "$0" "$1" private
fi
keepsake=$(realpath "$1")
list=/etc/ssl/certs/ca-certificates.crt
document=$(realpath "$(dirname "$0")/../docs/OPERATIONS.md")
work=$(mktemp -d "${TMPDIR:-/tmp}/keepsake-operations.XXXXXX")
finish() {
  local status=$?
  # Servers that a failed block has left: children of the shell that ran them, whose ids it notes.
  if [ -s "$work/children" ]; then xargs -r kill <"$work/children" 2>/dev/null || true; fi
  umount "$list" 2>/dev/null || true
  rm -rf "$work"
  exit $status
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work/bin" "$work/here"
ln -s "$keepsake" "$work/bin/keepsake"
cp "$list" "$work/trusted"
mount --bind "$work/trusted" "$list"
{
  echo 'set -euo pipefail'
  echo "trap 'jobs -p > \"$work/children\"' EXIT"
  awk -v list="$list" '
    /^```sh$/ {on = 1; printf "echo \"== line %d\" >&2\n", NR; next}
    /^```console trust$/ {printf "cat fullchain.pem >>%s\n", list; next}
    /^```/ {on = 0}
    on {print}' "$document"
  echo 'echo "== all of it works" >&2'
} >"$work/commands"
cd "$work/here"
PATH="$work/bin:$PATH" bash "$work/commands"
