#!/usr/bin/env bash
# Runs every test. The end-to-end tests wait for servers most of their time, so they run in two
# processes beside the other packages: those in which something breaks, and the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

breaks='Kill|Park|Break|Away|Damage|Missing|Skipped|Retry|Pause|Interrupt|Forward|Existing|Fault|Sampling|Replay'
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$logs"' EXIT

readarray -t packages < <(go list ./... | grep -v '/test/e2e$')
go test -timeout 30m ./test/e2e -run "$breaks" >"$logs/what-breaks" 2>&1 &
first=$!
go test -timeout 30m ./test/e2e -skip "$breaks" >"$logs/what-works" 2>&1 &
second=$!
status=0
export ROPEWALK_HUMANEVAL_ROUNDS=${ROPEWALK_HUMANEVAL_ROUNDS:-5} # of 50: make humaneval
go test -timeout 30m "${packages[@]}" || status=1
for part in what-breaks what-works; do
	if [[ $part == what-breaks ]]; then wait $first || status=1; else wait $second || status=1; fi
	echo "end to end, $part:"
	cat "$logs/$part"
done
exit $status
