#!/usr/bin/env bash
# Looks up known vulnerabilities: of the Go code that is linked into the binary (govulncheck) and of the pinned Python
# packages (pip-audit). Where a database cannot be reached it says so and goes on; ROPEWALK_REQUIRE_AUDIT=1 makes that a
# failure. A vulnerability that is found always is one.
set -euo pipefail
cd "$(dirname "$0")/.."

logs=$(mktemp)
trap 'rm -f "$logs"' EXIT
status=0
# unanswered WHAT: says that something was not looked up.
unanswered() {
	echo "not audited: $1; the database of vulnerabilities cannot be reached or does not know it" >&2
	if [[ ${ROPEWALK_REQUIRE_AUDIT:-} == 1 ]]; then status=1; fi
}

# audit WHAT FOUND COMMAND…: runs the command, whose output matches FOUND if it has found a vulnerability.
audit() {
	local what=$1 found=$2 code=0 unknown
	shift 2
	echo "auditing $what"
	timeout 10m "$@" >"$logs" 2>&1 || code=$?
	grep -v 'could not be audited' "$logs" || true
	unknown=$(grep -c 'could not be audited' "$logs") || true
	if ((unknown)); then unanswered "$unknown packages of $what"; fi
	if ((code == 0)); then return; fi
	if ! grep -qE "$found" "$logs" && grep -qiE "$network" "$logs"; then
		unanswered "$what"
	else
		status=1
	fi
}
# network matches what the tools print where the network fails them.
network='no such host|dial tcp|connection (refused|reset|error)|max retries|timed? ?out|name resolution'
network+='|(403|404|5[0-9]{2}) [a-z]* ?error'

tools/build.sh govulncheck
audit "the Go modules" '^Vulnerability #' .tools/govulncheck ./cmd/...
tools/audit-python.sh
for pins in .ci/requirements.txt .ci/audit.txt tools/sandbox-python.txt tools/worlds/*.txt \
	gpu/setup/requirements.txt; do
	audit "$pins" '^Found [0-9]+ known' \
		.tools/audit-python/bin/python -m pip_audit --disable-pip --no-deps --progress-spinner off --timeout 15 \
		-r "$pins"
done
exit $status
