#!/usr/bin/env bash
# Trains three steps of the quickstart through `make run` and the real stack, checks the record with another command,
# and reads it. It uses a home of its own, which it removes.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$(mktemp -d)
export ROPEWALK_HOME=$home/ropewalk
trap 'rm -rf "$home"' EXIT
make run RECIPE="recipes/quickstart.yaml --set steps=3 --set warm_start.steps=60 --set evaluation.problems=30 --json" |
	tee "$home/report.json"
run=$(sed -nE 's/.*"run_id":"([^"]+)".*/\1/p' "$home/report.json")
grep -qE '"steps":3[,}]' "$home/report.json" # all of them
bin/ropewalk verify "$run"
bin/ropewalk sql "select step, count(*) as trajectories, avg(reward) as reward from rewards group by step order by step"
