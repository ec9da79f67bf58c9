#!/usr/bin/env bash
# Sees to what Keepsake needs beside Swift: SQLite, zstd, libcurl and, for the command, zlib to build;
# zstd's command and Python for the checks on real files.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v swift >/dev/null || { echo "Keepsake needs Swift 6.2 or later: https://www.swift.org/install" >&2; exit 1; }
[ "$(uname)" = Linux ] || {
  for tool in python3 zstd; do
    command -v "$tool" >/dev/null || { echo "Keepsake's checks need $tool; on macOS: brew install $tool" >&2; exit 1; }
  done
  exit 0
}

packages=()
[ -e /usr/include/sqlite3.h ] || packages+=(libsqlite3-dev)
[ -e /usr/include/zstd.h ] || packages+=(libzstd-dev)
[ -e /usr/include/curl/curl.h ] || compgen -G "/usr/include/*/curl/curl.h" >/dev/null ||
  packages+=(libcurl4-openssl-dev)
[ -e /usr/include/zlib.h ] || packages+=(zlib1g-dev)
# A whole server, which would run from then on, isn't installed unasked, nor its library: what needs it is left out.
if [ "${KEEPSAKE_SERVERS:-0}" = 1 ]; then
  [ -e /usr/include/postgresql/libpq-fe.h ] || packages+=(libpq-dev)
  compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || packages+=(postgresql)
  python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
fi
# Beside it, an object storage, for the user who builds: in the build's folder.
install_s3() {
  if [ "${KEEPSAKE_SERVERS:-0}" != 1 ] || [ -x .build/s3/bin/moto_server ]; then return 0; fi
  echo "Installing moto in .build/s3"
  rm -rf .build/s3
  python3 -m venv .build/s3
  .build/s3/bin/pip install --quiet --disable-pip-version-check 'moto[s3]>=5,<6' flask flask-cors
}
command -v zstd >/dev/null || packages+=(zstd)
command -v python3 >/dev/null || packages+=(python3)
command -v make >/dev/null || packages+=(make)
# A game that keeps its saves in files, to be played under keepsake wrap.
if [ "${KEEPSAKE_DEEP:-0}" = 1 ] && ! PATH=$PATH:/usr/games command -v moria >/dev/null; then
  if apt-cache show moria >/dev/null 2>&1; then packages+=(moria); fi
fi
if [ ${#packages[@]} -eq 0 ]; then
  install_s3
  exit 0
fi

command -v apt-get >/dev/null || {
  echo "Keepsake needs these packages (names of Debian): ${packages[*]}." \
    "Please install them with this system's package manager." >&2
  exit 1
}
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "Please install as root: apt-get install ${packages[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "Installing ${packages[*]}"
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq "${packages[@]}" >/dev/null
install_s3
