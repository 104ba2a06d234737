# SPDX-License-Identifier: LGPL-2.1-or-later
# For scripts that need a browser: run_node SCRIPT ARGUMENT... runs with the version of playwright-core in
# package-lock.json, installed in the build directory.

# prepare_browser: returns false and prints why if Chromium or playwright-core is missing.
prepare_browser() {
	local name
	for name in node npm "${CHROMIUM:-chromium}"; do
		command -v "$name" >/dev/null || {
			echo "$name is not installed"
			return 1
		}
	done
	modules=$BUILD/test/html
	mkdir -p "$modules" || return 1
	# Tests that need it may start at the same time.
	exec 9>"$modules/lock"
	flock 9
	cp "$SOURCE"/test/html/{package.json,package-lock.json,*.mjs} "$modules" || return 1
	if ! cmp -s "$modules/package-lock.json" "$modules/installed"; then
		(cd "$modules" && npm ci --ignore-scripts --no-audit --no-fund --silent) >"$modules/npm.log" 2>&1 || {
			echo "npm cannot install playwright-core: $(tail -n 1 "$modules/npm.log")"
			return 1
		}
		cp "$modules/package-lock.json" "$modules/installed"
	fi
	exec 9>&-
	CHROMIUM=$(command -v "${CHROMIUM:-chromium}")
	export CHROMIUM
}

run_node() {
	local script=$1
	shift
	node "$modules/$script" "$@"
}
