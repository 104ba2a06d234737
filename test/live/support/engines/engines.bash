# SPDX-License-Identifier: LGPL-2.1-or-later
# For scripts that need ClickHouse (chdb) and DuckDB, in the versions of package.json, installed in the build directory. Sets
# `engines`; exits with 77 if npm cannot install them. A lock file would have to list the libraries of all platforms, which
# not every registry has.
engines=$BUILD/test/engines
command -v node npm jq >/dev/null || { echo "nodejs, npm or jq is not installed" >&2; exit 77; }
mkdir -p "$engines" && cp "$SOURCE"/test/live/support/engines/*.{json,mjs} "$engines" || exit 2
cmp -s "$engines/package.json" "$engines/installed" || {
	(cd "$engines" && npm install --no-package-lock --ignore-scripts --no-audit --no-fund) >"$engines/npm.log" 2>&1 || {
		tail -n 3 "$engines/npm.log" >&2
		echo "npm cannot install chdb and @duckdb/node-api" >&2
		exit 77
	}
	cp "$engines/package.json" "$engines/installed"
}
