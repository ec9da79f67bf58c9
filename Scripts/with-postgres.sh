#!/bin/bash
# Runs a command with a PostgreSQL server of its own, on a free port of the loopback interface, in a temporary folder.
# KEEPSAKE_POSTGRES is its address. Whatever happens to the command, the server is stopped and the folder removed.
#
#   Scripts/with-postgres.sh COMMAND ARGUMENT...
#
# Ends with the command's status. Where no server is installed, says so, and runs the command without the variable.
set -euo pipefail

[ $# -gt 0 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
if [ -z "$programs" ] && command -v initdb >/dev/null; then programs=$(dirname "$(command -v initdb)"); fi
if [ -z "$programs" ] || [ ! -x "$programs/initdb" ]; then
  echo "No PostgreSQL server is installed (Debian: apt-get install postgresql): its tests are skipped." >&2
  exec "$@"
fi

as=()
if [ "$(id -u)" != 0 ]; then
  folder=$(mktemp -d "${TMPDIR:-/tmp}/keepsake-postgres.XXXXXX")
else
  # The server refuses to run as root, and its own user may not reach another folder.
  folder=$(mktemp -d /tmp/keepsake-postgres.XXXXXX)
  as=(runuser -u postgres --)
  chown postgres "$folder"
  # The way to it has to be open.
  chmod 755 "$folder"
fi
server=
finish() {
  status=$?
  trap - EXIT INT TERM HUP
  if [ -n "$server" ]; then
    ${as[@]+"${as[@]}"} "$programs/pg_ctl" stop --pgdata "$folder/data" --mode immediate --silent >/dev/null 2>&1 || true
  fi
  rm -rf "$folder"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

${as[@]+"${as[@]}"} "$programs/initdb" --pgdata "$folder/data" --username keepsake --auth trust --encoding UTF8 --locale C \
  --no-instructions >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2; exit 1; }

for try in 1 2 3 4 5; do
  port=$((20000 + RANDOM % 30000))
  if ${as[@]+"${as[@]}"} "$programs/pg_ctl" start --pgdata "$folder/data" --log "$folder/data/server.log" --wait --timeout 60 \
    --silent --options "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories=$folder/data \
      -c max_connections=200 -c shared_buffers=64MB -c logging_collector=off" >/dev/null 2>&1; then
    server=yes
    break
  fi
done
[ -n "$server" ] || { tail -n 20 "$folder/data/server.log" >&2; echo "PostgreSQL can't be started." >&2; exit 1; }

export KEEPSAKE_POSTGRES="postgres://keepsake@127.0.0.1:$port/postgres"
export KEEPSAKE_POSTGRES_FOLDER="$folder/data"
status=0
"$@" || status=$?
exit "$status"
