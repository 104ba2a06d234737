#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Usage: fleet-push.sh DIR: sends what fleet-export.sh wrote, and removes what the server accepts; the rest stays for
# the next time, or until mmtrace watch needs the space. These variables say where to, see mmtrace-fleet(7):
#   ROWS_URL                    POST the rows, compressed
#   PYROSCOPE_URL, PROFILE_URL  POST the profile, to Pyroscope's /ingest or as it is
#   SERVICE                     name in Pyroscope
#   HEADERS                     file of headers, such as "Authorization: Bearer TOKEN", that nobody else can read
#   PROTOCOL, TIMEOUT           https; 60, the seconds of one try
set -u
failed=0
if [ -n "${HEADERS-}" ] && case $(stat -L -c %a "$HEADERS") in [46]00) false ;; esac; then
	echo "$HEADERS: its mode must be 600 or 400" >&2
	exit 2
fi

# send FILE CURL-ARGUMENT...: redirects are not followed.
send() {
	file=$1
	shift
	status=$(curl --silent --show-error --output /dev/null --write-out '%{http_code}' --proto "=${PROTOCOL:-https}" \
		--connect-timeout 10 --max-time "${TIMEOUT:-60}" --retry 4 --retry-connrefused --retry-max-time 300 \
		${HEADERS:+--header "@$HEADERS"} "$@")
	case $status in
	2??) rm -- "$file" ;;
	*) failed=1 && echo "$file stays: status $status" >&2 ;;
	esac
}

for file in "$1"/*.ndjson; do
	[ -s "$file" ] && [ -n "${ROWS_URL-}" ] || continue
	if gzip -c "$file" >"$file.gz"; then
		send "$file" --header 'Content-Type: application/x-ndjson' --header 'Content-Encoding: gzip' \
			--data-binary "@$file.gz" "$ROWS_URL"
	else
		failed=1
	fi
	rm -f -- "$file.gz"
done
for file in "$1"/*.pb.gz; do
	[ -s "$file" ] || continue
	start=$(basename "$file" | sed -E 's/^(....)(..)(..)T(..)(..)(..).*/\1-\2-\3 \4:\5:\6/')
	if [ -n "${PYROSCOPE_URL-}" ]; then
		send "$file" --url-query "name=${SERVICE:-mmtrace}{host_name=$(uname -n)}" --url-query format=pprof \
			--url-query "from=$(date -u -d "$start" +%s)" --url-query "until=$(date -r "$file" +%s)" \
			--form "profile=@$file;type=application/octet-stream" "$PYROSCOPE_URL"
	elif [ -n "${PROFILE_URL-}" ]; then
		send "$file" --header 'Content-Type: application/octet-stream' --data-binary "@$file" "$PROFILE_URL"
	fi
done
exit $failed
