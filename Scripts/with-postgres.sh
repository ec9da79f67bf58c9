#!/usr/bin/env bash
# Runs a command with a PostgreSQL server of its own, in a temporary folder that nobody else may enter, where its socket
# is, too. KEEPSAKE_POSTGRES is its address. Whatever happens to the command or to this script, the server is stopped
# and the folder removed.
#
#   Scripts/with-postgres.sh COMMAND ARGUMENT...
#
# Ends with the command's status. Where no server is installed, or none can be started, says so and runs the command
# without the variable; with KEEPSAKE_SERVERS=1 it fails instead.
set -euo pipefail

[ $# -gt 0 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }

without() {
  echo "$1: the tests with PostgreSQL are skipped." >&2
  [ "${KEEPSAKE_SERVERS:-0}" != 1 ] || exit 1
  exec "${@:2}"
}
programs=
for folder in ${KEEPSAKE_POSTGRES_PROGRAMS:-/usr/lib/postgresql/*/bin}; do
  [ ! -x "$folder/initdb" ] || programs=$folder
done
if [ -z "$programs" ] && [ -z "${KEEPSAKE_POSTGRES_PROGRAMS:-}" ] && command -v initdb >/dev/null; then
  programs=$(dirname "$(command -v initdb)")
fi
[ -n "$programs" ] || without "No PostgreSQL server is installed (Debian: apt-get install postgresql)" "$@"

# The server refuses to run as root.
as=env
if [ "$(id -u)" = 0 ]; then
  id postgres >/dev/null 2>&1 || without "There is no user postgres, as whom a server could run" "$@"
  as="runuser -u postgres --"
fi
# Whatever TMPDIR is: a socket's path is short, and another user has to get there.
folder=$(mktemp -d /tmp/keepsake-postgres.XXXXXX)
stop() {
  cd /
  $as "$programs/pg_ctl" stop --pgdata "$folder/data" --mode immediate --silent >/dev/null 2>&1 || true
  rm -rf "$folder"
}
[ "$as" = env ] || chown postgres "$folder"
# Stops it if this script was killed.
parent=$$
# In a group of its own: a whole group may be killed at once.
set -m
(
  trap '' INT TERM HUP
  while kill -0 "$parent" 2>/dev/null; do sleep 1; done
  stop
) >/dev/null 2>&1 </dev/null &
set +m
trap 'status=$?; trap - EXIT; stop; exit "$status"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

start() (
  cd "$folder"
  $as "$programs/initdb" --pgdata "$folder/data" --username keepsake --auth trust --encoding UTF8 --locale C \
    --no-instructions --no-sync && bash "$folder/control" start
)
# For tests: `crash` kills all of the server's processes and starts it again, `cut` ends all connections, `stand-still`
# stops it for a moment.
cat > "$folder/control" <<EOF
set -eu
cd "$folder"
# What whoever calls this waits for must not stay open as long as the server runs.
for file in /proc/\$\$/fd/*; do
  file=\${file##*/}
  case "\$file" in 0 | 1 | 2 | 255) ;; *) eval "exec \$file>&-" ;; esac
done
start() {
  $as "$programs/pg_ctl" start --pgdata "$folder/data" --log "$folder/data/server.log" --wait --timeout 60 \\
    --options "-c listen_addresses='' -c unix_socket_directories=$folder -c max_connections=400"
}
all() {
  server=\$(head -n 1 data/postmaster.pid)
  echo "\$server \$(ps -o pid= --ppid "\$server" | tr '\n' ' ')"
}
case "\$1" in
  start) start ;;
  crash)
    processes=\$(all)
    kill -9 \$processes 2>/dev/null || true
    for process in \$processes; do while kill -0 "\$process" 2>/dev/null; do sleep 0.05; done; done
    start
    ;;
  cut)
    "$programs/psql" --quiet --no-psqlrc --host "$folder" --username keepsake postgres --command "
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    ;;
  stand-still)
    processes=\$(all)
    kill -STOP \$processes 2>/dev/null || true
    sleep 1
    kill -CONT \$processes 2>/dev/null || true
    ;;
esac
EOF
if ! log=$(start 2>&1); then
  { echo "$log"; tail -n 20 "$folder/data/server.log" || true; } >&2 2>/dev/null
  [ "${KEEPSAKE_SERVERS:-0}" != 1 ] || exit 1
  echo "PostgreSQL can't be started: its tests are skipped." >&2
else
  export KEEPSAKE_POSTGRES="postgres://keepsake@/postgres?host=$folder"
  export KEEPSAKE_POSTGRES_FOLDER="$folder/data" KEEPSAKE_POSTGRES_CONTROL="$folder/control"
fi
"$@"
