#!/usr/bin/env bash
# Runs every fuzz target for the time given (10s unless told), two targets at once on one core each. It fails if a
# target finds an input that breaks it; testing then writes that input into the package's testdata.
# Usage: tools/fuzz.sh [TIME [PATTERN]], PATTERN being a regular expression over "package Target".
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
pattern=${2:-.}

readarray -t targets < <(git grep -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' |
	sed -E 's|/[^/]*_test\.go:func | |; s|^|./|' | grep -E -- "$pattern" | sort)
((${#targets[@]})) || { echo "no fuzz target matches $pattern" >&2; exit 1; }

logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$logs"' EXIT
corpora=$(go env GOCACHE)/fuzz/$(go list -m) # as go test -fuzz has it

# out_of_time LOG: testing ended a target at its time limit and called that a failure (golang.org/issue/75804). A target
# that found something names the input's file, and a corpus that fails is reported before the fuzzing begins.
out_of_time() {
	grep -qE '^ +context deadline exceeded$' "$1" && ! grep -qE 'Failing input|failure while testing seed|panic:' "$1"
}

# one PACKAGE TARGET: fuzzes one target, in the program of its package, and prints a line about it. One that ran out of
# time is tried again.
one() {
	local log=$logs/${1//\//-}-$2 result try
	for try in 1 2 3; do
		if (cd "$1" && exec "$(program "$1")" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$time" \
			-test.parallel 1 -test.fuzzcachedir "$corpora/${1#./}" -test.paniconexit0) >"$log" 2>&1; then
			result=$(grep -oE 'execs: [0-9]+' "$log" | tail -n 1) || result= # it has read its corpus alone
			echo "ok    $1 $2 ${result:-no execution was counted}"
			return
		fi
		out_of_time "$log" || break
		echo "again $1 $2: it met its own time limit (try $try)"
	done
	echo "FAIL  $1 $2"
	cat "$log"
	touch "$logs/failed"
}

# program PACKAGE: the path of the package's program, which has all of its targets. Each is compiled and linked once.
program() { echo "$logs/${1//\//-}.test"; }

for target in "${targets[@]}"; do
	package=${target% *}
	[[ -x $(program "$package") ]] || go test -c -fuzz . -vet=off -o "$(program "$package")" "$package"
	while (($(jobs -rp | wc -l) >= 2)); do wait -n || true; done
	# shellcheck disable=SC2086 # the package and the target are two words
	one $target &
done
wait
[[ ! -e $logs/failed ]]
