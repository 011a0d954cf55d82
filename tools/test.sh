#!/usr/bin/env bash
# Runs every test. The end-to-end tests wait for servers most of their time, so they run in three processes at the same
# time as the other packages, and share the command and the base run: the tests with their own servers, of which several
# run at once; the tests in which something breaks in the shared servers; the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

apart='Existing|OldRecord|FaultsOf|StagesThatBreak|Away|RecordAlone|Missing|UpEnds|SandboxNodes|ReplayBuffer'
breaks='Kill|Park|Damage|Skipped|Retry|Pause|Interrupt|Forward|Sampling|Replay'
shared=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$shared"' EXIT

readarray -t packages < <(go list ./... | grep -v '/test/e2e$')
go build -trimpath -o "$shared/ropewalk" ./cmd/ropewalk &
build=$!
go test -c -ldflags=-s -o "$shared/e2e.test" ./test/e2e
wait $build
export ROPEWALK_E2E_BINARY=$shared/ropewalk ROPEWALK_E2E_BASE=$shared/base

declare -A running
# part NAME FLAG…: starts some of the end-to-end tests.
part() {
	local name=$1
	shift
	(cd test/e2e && exec "$shared/e2e.test" -test.timeout 30m "$@") >"$shared/$name" 2>&1 &
	running[$name]=$!
}
part apart -test.run "$apart" -test.parallel 4
part breaks -test.run "$breaks" -test.skip "$apart"
part works -test.skip "$breaks|$apart"

status=0
export ROPEWALK_HUMANEVAL_ROUNDS=${ROPEWALK_HUMANEVAL_ROUNDS:-2} # of 50: make humaneval
# Without symbols and go vet, which make lint runs: the tests of some seventy packages are linked here.
if (($#)); then
	readarray -t race < <(go list "$@")
	go test -race -skip '^TestReal' -timeout 30m -vet=off -ldflags=-s "${race[@]}" 2>&1 | tee "$shared/race" || status=1
	# What PyTorch computes is held against the CPU engine, whose vector loads the detector's pointer checks refuse.
	# It mostly waits for one process to start, so it runs at the same time as the rest.
	go test -run '^TestReal' -timeout 30m -vet=off -ldflags=-s ./gpu/torch >"$shared/torch" 2>&1 &
	running[torch]=$!
	readarray -t packages < <(printf '%s\n' "${packages[@]}" | grep -vxF "$(printf '%s\n' "${race[@]}")")
fi
go test -timeout 30m -vet=off -ldflags=-s "${packages[@]}" 2>&1 | tee "$shared/packages" || status=1
for name in "${!running[@]}"; do
	wait "${running[$name]}" || status=1
	echo "at the same time as the others, $name:"
	cat "$shared/$name"
done
# The failures come last, where they are seen although a test that ran out of time prints thousands of lines of stacks.
if ((status)); then
	printf '\nfailed:\n'
	(cd "$shared" &&
		grep -sE '^ *--- FAIL|^FAIL|^panic:|WARNING: DATA RACE|^running tests:|^	Test[A-Za-z0-9_/]+ \(' \
			race packages "${!running[@]}") || true
fi
exit $status
