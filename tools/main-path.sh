#!/usr/bin/env bash
# Measures the main path: the statements of workflows, activities and the driver that one more step executes. It runs
# the quickstart with one step and with three, with a program that counts executions, and writes to the file named as
# argument each block of statements that the longer run executed at least twice more, one on a line: preparing a run,
# the warm start and evaluations do not count. Takes two minutes, one of them for linking.
# Usage: tools/main-path.sh FILE
set -euo pipefail
out=$(realpath -m "${1:?name the file to write}")
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

packages=./cmd/ropewalk,./activities/...,./workflows/... # without the program's own package nothing is written
[[ ! -d internal/step ]] || packages+=,./internal/step/...
go build -trimpath -cover -covermode=atomic -coverpkg="$packages" -o "$work/ropewalk" ./cmd/ropewalk

# The stack ends with the command, and its worker ends by itself: only then are its counts written. The second run takes
# the first one's warm start. That is long enough for groups whose rewards differ; without any, no update is computed.
mkdir -m 700 "$work/state" "$work/cwd"
for steps in 1 3; do
	mkdir "$work/$steps"
	if ! (cd "$work/cwd" && env -i PATH="$root/.tools:$PATH" HOME="$work/cwd" ROPEWALK_HOME="$work/state" \
		GOCOVERDIR="$work/$steps" "$work/ropewalk" run quickstart --set steps=$steps \
		--set warm_start.steps=100 --set evaluation.problems=6 --json) >"$work/log" 2>&1; then
		echo "the run of $steps steps failed:" >&2
		tail -n 20 "$work/log" >&2
		exit 1
	fi
	go tool covdata textfmt -i="$work/$steps" -o "$work/$steps.txt"
	blocks=$(grep -c '/activities/.* [1-9][0-9]*$' "$work/$steps.txt" || true)
	((blocks > 200)) || { # the command and the supervisor execute a dozen
		echo "the worker of the run of $steps steps left no counts: it was killed before it could end" >&2
		exit 1
	}
done
mkdir -p "$(dirname "$out")"
awk 'FNR > 1 { ran[FILENAME, $1] += $3; block[$1] }
	END { for (b in block) if (ran[ARGV[2], b] - ran[ARGV[1], b] >= 2) print b }' "$work/1.txt" "$work/3.txt" |
	sort >"$out"
