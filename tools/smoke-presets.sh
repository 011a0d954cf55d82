#!/usr/bin/env bash
# Trains smoke recipes through the real stack, of the presets that are named or of the first preset of every method, and
# checks each record: three steps whose losses are numbers, and a policy that has moved. Goes on after a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
if (($# == 0)); then
	mapfile -t presets < <(bin/ropewalk methods --json | grep -o '"presets": *\["[^"]*' | sed 's/.*"//')
	set -- "${presets[@]}"
fi
(($# > 0)) # the list was read
bin/ropewalk up & # no run waits for the stack to start
up=$!
trap 'kill -INT $up; wait $up || true' EXIT

# smoke PRESET
smoke() {
	local run took
	run=$(bin/ropewalk run "$1" --smoke --json | sed -nE 's/.*"run_id": ?"([^"]+)".*/\1/p')
	bin/ropewalk sql "select step, avg(loss) as loss, avg(grad_norm) as gradient from updates where run = '$run'
		group by step order by step"
	took=$(bin/ropewalk sql --csv "select (select count(distinct step) from rewards where run = '$run') = 3 and
		max(grad_norm) > 0 and bool_and(isfinite(loss) and isfinite(grad_norm)) as moved from updates
		where run = '$run'")
	[[ $took == *true ]] && bin/ropewalk verify "$run" && bin/ropewalk replay --check "$run"
}

failed=()
for preset; do
	printf '\n%s\n' "$preset"
	smoke "$preset" || failed+=("$preset")
done
((${#failed[@]} == 0)) || { echo "failed: ${failed[*]}" >&2; exit 1; }
