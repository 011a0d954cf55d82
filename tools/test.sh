#!/usr/bin/env bash
# Runs every test. The end-to-end tests wait for servers most of their time, so they run in three processes at the same
# time as the other packages, and share the command and the base run: the tests with their own servers, of which several
# run at once; the tests in which something breaks in the shared servers; the rest. A few tests that fail are run once
# more when all others have ended: they kill and freeze processes, and a machine that is busy may decide otherwise than
# the test expects. What passes then is named at the end, and is to be made robust.
set -euo pipefail
cd "$(dirname "$0")/.."

apart='Existing|OldRecord|FaultsOf|StagesThatBreak|Away|RecordAlone|Missing|UpEnds|SandboxNodes|RolloutWorkers|ReplayBuffer|Alerts|NoSecret|Traces'
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
	(cd test/e2e && exec "$shared/e2e.test" -test.timeout 45m "$@") >"$shared/$name" 2>&1 &
	running[$name]=$!
}
part apart -test.run "$apart" -test.parallel 4
part breaks -test.run "$breaks" -test.skip "$apart"
part works -test.skip "$breaks|$apart"

failed=() # names of logs
# tests FLAG… PACKAGE…: without symbols and go vet, which make lint runs: the tests of some seventy packages are linked
# here. Compilers step back for tests, which have deadlines.
tests() {
	go test -toolexec 'nice -n 10' -timeout 30m -vet=off -ldflags=-s "$@"
}
if (($#)); then
	readarray -t race < <(go list "$@")
	{
		tests -race -skip '^TestReal' "${race[@]}"
		status=$?
		# Of the activities, those whose episodes do not wait for one another. All of them would take minutes.
		tests -race -run "$RACE_FLOWS" ./activities && ((!status))
	} 2>&1 | tee "$shared/race" || failed+=(race)
	# What PyTorch computes is held against the CPU engine, whose vector loads the detector's pointer checks refuse.
	# It mostly waits for one process to start, so it runs at the same time as the rest.
	tests -run '^TestReal' ./gpu/torch >"$shared/torch" 2>&1 &
	running[torch]=$!
	readarray -t packages < <(printf '%s\n' "${packages[@]}" | grep -vxF "$(printf '%s\n' "${race[@]}")")
fi
# Some packages mostly wait, so that one more than there are processors runs at once.
tests -p $(($(nproc) + 1)) "${packages[@]}" 2>&1 | tee "$shared/packages" || failed+=(packages)
for name in "${!running[@]}"; do
	wait "${running[$name]}" || failed+=("$name")
	echo "at the same time as the others, $name:"
	cat "$shared/$name"
done
# failures FILE: the tests in a log that failed, as "package test" (package "-" in an end-to-end part's log). A data
# race, a panic, or a package that fails without naming a test gives "never".
failures() {
	awk '
		/^--- FAIL: / { tests[n++] = $3 }
		/^WARNING: DATA RACE|^panic:|\[build failed\]|^running tests:/ { print "never" }
		/^FAIL\t/ { if (!n) print "never"; for (i = 0; i < n; i++) print $2, tests[i]; n = 0 }
		/^ok  / { n = 0 }
		END { for (i = 0; i < n; i++) print "-", tests[i] }' "$1"
}
# again FLAG…: runs the tests of $again, "package test" each, once more.
again() {
	local package name
	while read -r package name; do
		printf '\nonce more, alone: %s %s\n' "$package" "$name"
		if [[ $package == - ]]; then
			(cd test/e2e && "$shared/e2e.test" -test.timeout 30m -test.run "^$name\$" </dev/null)
		else
			tests "$@" -count 1 -run "^$name\$" "$package" </dev/null
		fi || return 1
	done <<<"$again"
}
((${#failed[@]})) || exit 0
retry=1 names=
for log in "${failed[@]}"; do
	again=$(failures "$shared/$log")
	names+=$again$'\n'
	flags=()
	[[ $log == race ]] && flags=(-race)
	if [[ ! $again || $again == *never* ]] || (($(wc -l <<<"$names") > 5)) || ! again "${flags[@]}"; then
		retry=0
		break
	fi
done
if ((retry)); then
	printf '\nunstable (failed among the others, passed alone):\n%s' "$names"
	exit 0
fi
# The failures come last, where they are seen although a test that ran out of time prints thousands of lines of stacks.
printf '\nfailed:\n'
(cd "$shared" &&
	grep -sE '^ *--- FAIL|^FAIL|^panic:|WARNING: DATA RACE|^running tests:|^	Test[A-Za-z0-9_/]+ \(' \
		race packages "${!running[@]}") || true
exit 1
