#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# For mmtrace watch --run: writes a profile and the rows of a recording beside it, for fleet-push.sh. See
# mmtrace-fleet(7).
set -eu
mmtrace=${MMTRACE:-mmtrace}
"$mmtrace" export -f rows ${SERVICE:+--service "$SERVICE"} -i "$1" -o "${1%.data}.ndjson"
"$mmtrace" export -f pprof ${SERVICE:+--service "$SERVICE"} -i "$1" -o "${1%.data}.pb.gz"
