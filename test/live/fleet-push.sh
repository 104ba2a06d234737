#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The example scripts write and push what mmtrace watch has recorded: with retries, over TLS, with a token from a
# private file; what the server does not accept stays.
# Packages: curl:curl openssl:openssl
set -u
source "$SOURCE/test/golden/replay.bash" || exit 2
cd "$directory" || exit 2
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }
for command in curl openssl python3 jq; do
	command -v $command >/dev/null || { echo "$command is not installed" >&2; exit 77; }
done
curl --help all | grep -q url-query || { echo "this curl has no --url-query" >&2; exit 77; }

mkdir watched
cp "$SOURCE/test/data/more.data" watched/20261130T140000.017Z.data
SERVICE=web sh "$SOURCE/cmd/fleet-export.sh" watched/20261130T140000.017Z.data interval || fail "export"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out ca.pem -days 2 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost 2>openssl.log && cat key.pem ca.pem >server.pem || { cat openssl.log; exit 2; }
python3 "$SOURCE/test/live/support/stub-server.py" server.pem requests >port &
server=$!
trap 'kill $server; rm -rf "$directory"' EXIT
for ((i = 0; i < 300; i++)); do [ -s port ] && break; sleep 0.1; done
url=https://localhost:$(cat port)
echo 'Authorization: Bearer secret-7' >headers
chmod 600 headers
export HEADERS=$PWD/headers SERVICE=web TIMEOUT=5

# push VARIABLE=URL...: sets `status` and the file `messages`.
push() {
	env "$@" sh "$SOURCE/cmd/fleet-push.sh" watched >messages 2>&1
	status=$?
	! grep -q secret-7 messages || fail "$*: the token is in the messages"
}

# stays STATUS WORDS: so does the file, and the message says why.
stays() {
	[ $status = 1 ] && grep -q "$1" messages && [ -s watched/20261130T140000.017Z.ndjson ] || fail "$2: $(cat messages)"
}
push ROWS_URL="$url/rows"
stays 'status 000' "unknown certificate"
export CURL_CA_BUNDLE=$PWD/ca.pem
push ROWS_URL="https://127.0.0.1:${url##*:}/rows"
stays 'status 000' "certificate of another host"
push ROWS_URL="http://localhost:${url##*:}/rows"
stays 'not supported' "no TLS"
push ROWS_URL="$url/redirect"
stays 'status 302' "redirect"
push ROWS_URL="$url/broken"
stays 'status 400' "refused by the server"
chmod 644 headers
push ROWS_URL="$url/rows"
[ $status = 2 ] && grep -q 'mode must be 600' messages || fail "public token: $(cat messages)"
chmod 600 headers
[ ! -s requests ] || fail "it sent something: $(cat requests)"

# The first try gets 429, the second one hangs, the third one is accepted.
"$MMTRACE" export -f rows --service web watched/*.data | jq -cs . >expected
push ROWS_URL="$url/rows" PYROSCOPE_URL="$url/ingest"
[ $status = 0 ] || fail "push: $(cat messages)"
jq -ces --slurpfile expected expected '.[0] | .path == "/rows" and .rows == $expected[0] and .tries >= 3
	and .token == "Bearer secret-7"' requests >/dev/null || fail "rows: $(head -c 500 requests)"
jq -ces --arg host "$(uname -n)" --argjson from "$(date -d '2026-11-30T14:00:00.017Z' +%s)" '.[-1] | .path == "/ingest"
	and .form == "profile" and .query.name == "web{host_name=\($host)}" and (.query.from | tonumber) == $from
	and (.query.until | tonumber) > 0 and .query.format == "pprof" and .profile_bytes > 100' requests >/dev/null ||
	fail "profile: $(tail -n 1 requests)"
[ "$(ls watched)" = 20261130T140000.017Z.data ] || fail "left: $(ls watched)"

# A profile as it is.
sh "$SOURCE/cmd/fleet-export.sh" watched/*.data interval
push PROFILE_URL="$url/profiles"
[ $status = 0 ] && tail -n 1 requests | jq -e '.path == "/profiles" and .profile_bytes > 100' >/dev/null || fail "plain profile"
[ ! -e watched/20261130T140000.017Z.pb.gz ] && [ -e watched/20261130T140000.017Z.ndjson ] || fail "left: $(ls watched)"
exit $failed
