#!/usr/bin/env bash
# Runs a command with an object storage of its own that speaks the protocol of S3 (moto), on loopback. KEEPSAKE_S3 is
# its bucket as `keepsake serve --contents` takes it, and AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY its credentials:
# it refuses requests whose signature is wrong. Whatever happens to the command or to this script, the storage is
# stopped and its folder removed.
#
#   Scripts/with-s3.sh COMMAND ARGUMENT...
#
# Ends with the command's status. Where moto isn't installed (in .build/s3, by KEEPSAKE_SERVERS=1 Scripts/prepare.sh),
# or can't be started, says so and runs the command without the variables; with KEEPSAKE_SERVERS=1 it fails instead.
set -euo pipefail

[ $# -gt 0 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }

without() {
  echo "$1: the tests with S3 are skipped." >&2
  [ "${KEEPSAKE_SERVERS:-0}" != 1 ] || exit 1
  exec "${@:2}"
}
programs=${KEEPSAKE_S3_PROGRAMS:-$(cd "$(dirname "$0")/.." && pwd)/.build/s3/bin}
[ -x "$programs/moto_server" ] || without "moto isn't installed" "$@"

folder=$(mktemp -d "${TMPDIR:-/tmp}/keepsake-s3.XXXXXX")
stop() {
  cd /
  [ ! -s "$folder/pid" ] || kill -9 "$(cat "$folder/pid")" 2>/dev/null || true
  rm -rf "$folder"
}
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

# The first four requests, which make the user and the bucket, need no signature.
start() {
  set -m
  # What whoever calls this waits for must not stay open as long as the storage runs.
  (
    for file in /proc/$BASHPID/fd/*; do
      file=${file##*/}
      case "$file" in 0 | 1 | 2 | 255) ;; *) eval "exec $file>&-" ;; esac
    done
    cd "$folder"
    TMPDIR=$folder INITIAL_NO_AUTH_ACTION_COUNT=4 MOTO_S3_DEFAULT_KEY_BUFFER_SIZE=1048576 PYTHONDONTWRITEBYTECODE=1 \
      exec "$programs/python" -c '
import os
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
with open("port.new", "w") as file: file.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()'
  ) >"$folder/log" 2>&1 </dev/null &
  echo $! >"$folder/pid"
  set +m
  for _ in $(seq 300); do
    [ ! -s "$folder/port" ] || break
    kill -0 "$(cat "$folder/pid")" 2>/dev/null || return 1
    sleep 0.1
  done
  [ -s "$folder/port" ] || return 1
  (cd "$folder" && "$programs/python" -c '
import json, boto3
port = open("port").read()
def client(name):
    return boto3.client(name, endpoint_url="http://127.0.0.1:" + port, region_name="us-east-1",
                        aws_access_key_id="nobody", aws_secret_access_key="nothing")
iam = client("iam")
iam.create_user(UserName="keepsake")
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="keepsake", PolicyName="contents", PolicyDocument=json.dumps(policy))
key = iam.create_access_key(UserName="keepsake")["AccessKey"]
client("s3").create_bucket(Bucket="keepsake")
with open("credentials", "w") as file: file.write(key["AccessKeyId"] + " " + key["SecretAccessKey"])')
}
if ! start; then
  tail -n 20 "$folder/log" >&2 || true
  [ "${KEEPSAKE_SERVERS:-0}" != 1 ] || exit 1
  echo "moto can't be started: its tests are skipped." >&2
else
  read -r AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY <"$folder/credentials" || true
  export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
  unset AWS_SESSION_TOKEN
  export KEEPSAKE_S3="s3://keepsake/contents?endpoint=http://127.0.0.1:$(cat "$folder/port")&region=us-east-1"
fi
"$@"
