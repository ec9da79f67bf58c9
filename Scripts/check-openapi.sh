#!/usr/bin/env bash
# check-openapi.sh KEEPSAKE [EXAMPLES]: starts a server of the given command, and compares its answers with
# docs/openapi.yaml and docs/openapi-admin.yaml: no 5xx, no status, type, header or body that isn't described. The
# requests are made by schemathesis, which is installed into a virtual environment in a temporary folder ($SCHEMATHESIS
# names one that exists). EXAMPLES is how many random requests each operation gets, besides those of the coverage of its
# description.
set -euo pipefail
keepsake=$(realpath "$1")
documents=$(realpath "$(dirname "$0")/../docs")
examples=${2:-60}
work=$(mktemp -d "${TMPDIR:-/tmp}/keepsake-openapi.XXXXXX")
server=
cd "$work"
finish() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" || true; fi
  cd / && rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

schemathesis=${SCHEMATHESIS:-}
if [ -z "$schemathesis" ]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet 'schemathesis>=4.3,<5'
  schemathesis=$work/venv/bin/schemathesis
fi

# Schemathesis registers as many devices from one address as it likes.
"$keepsake" serve --data "$work/data" --port 0 --admin-port 0 --registrations-per-address 100000 --json \
  >"$work/hello" 2>"$work/log" &
server=$!
for _ in $(seq 600); do
  [ -s "$work/hello" ] && break
  kill -0 "$server" || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done
field() { sed 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/'; }
url=$(field url <"$work/hello")
# A game that may use a shared container.
app_key=$("$keepsake" app create --data "$work/data" --name openapi)
"$keepsake" team create --data "$work/data" studio
"$keepsake" team add --data "$work/data" studio openapi
"$keepsake" team share --data "$work/data" studio coins
"$keepsake" team grant --data "$work/data" studio coins openapi
admin_url=http://127.0.0.1:$(field adminPort <"$work/hello")
register() { curl -sSf -H "Keepsake-App-Key: $app_key" -d '{"name":"openapi"}' "$url/v1/devices"; }
server_key=$("$keepsake" bank key --data "$work/data" --name openapi)

# A player that exists: generated ids name none.
account=$(register)
token=$(field token <<<"$account")
printf '[parameters]\n"path.player" = "%s"\n"path.name" = "coins"\n' "$(field player <<<"$account")" \
  >"$work/schemathesis.toml"

checks=not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance
checks+=,response_schema_conformance,unsupported_method
# run NAME ARGUMENTS...: one run of schemathesis with these credentials and routes.
run() {
  local name=$1 description=${description:-$documents/openapi.yaml} at=${at:-$url}
  echo "== $name"
  shift
  "$schemathesis" --config-file "$work/schemathesis.toml" run "$description" --url "$at" --checks "$checks" \
    --max-examples "$examples" --no-color --phases examples,coverage,fuzzing --continue-on-failure \
    --request-timeout 60 --generation-database none "$@"
}
status=0
operations() { printf -- '--include-operation-id %s ' "$@"; }
run "accounts" -H "Keepsake-App-Key: $app_key" $(operations health register join recover) || status=1
run "sync" -H "Authorization: Bearer $token" $(operations listDevices removeDevice pairingCode recovery \
  setRecoveryCode identities linkIdentity joinByIdentity identityNonce unlinkIdentity export exchange leave \
  putContent getContent uploadState nextEvent) || status=1
run "shared containers" -H "Authorization: Bearer $token" $(operations registerShared joinShared recoverShared) ||
  status=1
run "bank" -H "Authorization: Bearer $server_key" $(operations bankAccount order refund receipt releasePlayer \
  releaseAll) || status=1
# On a line of its own: within another command, a failure would end nothing.
token=$(register | field token)
run "deletion" -H "Authorization: Bearer $token" $(operations deletePlayer) || status=1

admin_key=$("$keepsake" admin key create --data "$work/data" --name openapi \
  --scopes read,saves,money,devices,bans,export,delete)
# A player with a save, whose version the examples name.
account=$(register)
hash=$(printf save | sha256sum | cut -d' ' -f1)
printf '\x28\xb5\x2f\xfd\x20\x04\x21\x00\x00save' >"$work/frame"
curl -sS -H "Authorization: Bearer $(field token <<<"$account")" -T "$work/frame" -H "Keepsake-Length: 4" \
  "$url/v1/contents/$hash" >/dev/null
version=0000000000000000000000000000000a
curl -sS -H "Authorization: Bearer $(field token <<<"$account")" -d '{"protocolVersion": 1, "limit": 100,
  "cursor": {"epoch": 0, "seq": 0, "mark": 0}, "versions": [{"id": "'$version'", "slot": "main",
  "contents": ["'"$hash"'"], "length": 4, "savedAtMilliseconds": 1, "writer": "0000000000000001"}]}' \
  "$url/v1/exchange" >/dev/null
printf '[parameters]\n"path.player" = "%s"\n"path.version" = "%s"\n' "$(field player <<<"$account")" "$version" \
  >"$work/schemathesis.toml"
admin() { description=$documents/openapi-admin.yaml at=$admin_url run "$@" -H "Authorization: Bearer $admin_key"; }
admin "the studio's hand" $(operations findPlayers showPlayer listDevices removeDevice ban unban export listSlots \
  listVersions showVersion versionBytes restore diff showMoney order refund) || status=1
admin "deletion by the studio" $(operations deletePlayer) || status=1
"$keepsake" admin audit --data "$work/data" --verify || status=1

# A stream never ends: its first event is enough.
token=$(register | field token)
stream=$(curl -s -N -m 3 -D "$work/head" -H "Authorization: Bearer $token" "$url/v1/events" || true)
grep -qi '^content-type: text/event-stream' "$work/head" && grep -q '^data: {"seq":' <<<"$stream" ||
  { echo "the event stream isn't as described" >&2; status=1; }
if grep -q 'level=error\| error ' "$work/log"; then
  cat "$work/log" >&2
  status=1
fi
exit $status
