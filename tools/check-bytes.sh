#!/usr/bin/env bash
# Checks that this tree commits the same rows and trains the same weights as the commit BASE. It builds both, and runs
# with both, in both modes of rollouts: the quickstart with three steps, the small versions of three presets, and the
# runs of test/bytes/cases.txt. It compares the digests of all data objects by step, stage, turn, shard and table, and
# of the weights, and also the two modes of this tree with each other. Measured times and documents, which hold
# the recipe with its mode, are left out. The digests of a commit stay in .ropewalk/check-bytes, so that a second
# comparison runs only this tree.
# Usage: tools/check-bytes.sh BASE [RUN…]
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} ]] || { echo "name the commit to compare with: make check-bytes BASE=COMMIT" >&2; exit 2; }
base=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "there is no commit $1" >&2; exit 2; }
shift
root=$PWD
cases=$root/test/bytes
runs=("$@")
if ((${#runs[@]} == 0)); then
	mapfile -t runs < <(printf '%s\n' quickstart ppo sampo-alfworld spear-alfworld &&
		sed -nE 's/^([a-z]+) [a-z]+$/\1/p' "$cases/cases.txt")
fi
kept=$root/.ropewalk/check-bytes
mkdir -p "$kept"
work=$(mktemp -d)
judge=
cleanup() {
	[[ ! $judge ]] || kill "$judge" 2>/dev/null || true
	git worktree remove --force "$work/base" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

# recipe NAME: sets the array recipe to the arguments of "ropewalk run".
recipe() {
	local line of settings=(steps=2 rollout.prompts=4 rollout.shard_groups=2 evaluation.problems=3
		evaluation.greedy=false)
	case $1 in
	quickstart) recipe=(quickstart); settings=(steps=3 warm_start.steps=60 evaluation.problems=30) ;;
	ppo | sampo-alfworld | spear-alfworld) recipe=("presets/$1" --twin); settings=() ;; # the smoke recipe on calc
	*)
		of=$(sed -nE "s/^$1 ([a-z]+)\$/\1/p" "$cases/cases.txt")
		[[ $of ]] || { echo "there is no run $1 in $cases/cases.txt" >&2; exit 2; }
		[[ $of != tiny ]] || of=$root/test/e2e/testdata/tiny.yaml
		recipe=("$of")
		while read -r line; do settings+=("${line//HERE/$cases}"); done \
			< <(awk -v name="$1" '/^[^\t]/ { on = $1 == name } on && /^\t/' "$cases/cases.txt")
		;;
	esac
	for line in "${settings[@]}"; do recipe+=(--set "$line"); done
}

# digests HOME RUN: STEP/STAGE[/turn][/shard] TABLE DIGEST of each data object and of the weights of each checkpoint, in
# the order in which a run makes them.
digests() {
	(cd "$1"/state/s3/*/runs/run="$2"/manifests && find . -name 'gen=*.json' -print0 | xargs -0 awk '
		BEGIN {
			n = split("warm_start prompts rollout sandbox assemble grade judge function reward resample logprobs " \
				"advantage buffer update publish evaluate", order)
			for (i = 1; i <= n; i++) rank[order[i]] = 10 + i
		}
		FNR == 1 {
			at = FILENAME; gsub(/^\.\/|\/gen=[0-9]+\.json$/, "", at); split(at, part, /[=\/]/)
			place = (part[2] == "init" ? 0 : part[2]) " " rank[part[3]] + 0 "\t" at
		}
		match($0, /"digest": "[0-9a-f]+"/) { digest = substr($0, RSTART + 11, RLENGTH - 12) }
		match($0, /\/table=[a-z_]+\//) { print place, substr($0, RSTART + 7, RLENGTH - 8), digest }
		match($0, /"weights": "[0-9a-f]+"/) { print place, "weights", substr($0, RSTART + 12, RLENGTH - 13) }') |
		grep -vE ' (timings|documents) ' | sort -V | cut -f 2
}

# train BINARY HOME NAME MODE FILE: trains one run and writes its digests to FILE. The run skipped parks first.
train() {
	local binary=$1 home=$2 name=$3 mode=$4 file=$5 run=$3-$4 recipe
	recipe "$name"
	mkdir -p "$home"
	(
		cd "$home"
		export PATH=$root/.tools:$PATH ROPEWALK_HOME=$home/state ROPEWALK_BYTES_JUDGE
		"$binary" run "${recipe[@]}" --set "rollout.mode=$mode" --run-id "$run" --json ||
			{ [[ $name == skipped ]] && "$binary" unpark "$run" --skip --json; } # it has parked
	) >"$work/out" 2>"$work/err" || {
		echo "$binary run ${recipe[*]} --set rollout.mode=$mode failed:" >&2
		tail -n 20 "$work/err" >&2
		return 1
	}
	digests "$home" "$run" >"$file.new"
	grep -q ' weights ' "$file.new" || { echo "run $run has committed no weights" >&2; return 1; }
	mv "$file.new" "$file"
}

# differ FILE FILE WORDS: prints the first object that differs; false if none does.
differ() {
	local lines
	! cmp -s "$1" "$2" || return 1
	mapfile -t lines < <(diff "$1" "$2" | grep '^[<>]')
	echo "$3: ${#lines[@]} lines differ, the first: ${lines[0]:-}" # STEP/STAGE… TABLE DIGEST
}

if [[ ! -x $kept/$base ]]; then
	echo "building $base"
	git worktree add --quiet --detach "$work/base" "$base"
	go -C "$work/base" build -trimpath -o "$kept/$base" ./cmd/ropewalk
fi
echo "building this tree"
go build -trimpath -o "$work/head" ./cmd/ropewalk
python3 "$cases/judge.py" "$work/judge" 2>/dev/null & # it reports clients that do not wait for an answer
judge=$!
until [[ -s $work/judge ]]; do kill -0 "$judge"; sleep 0.1; done
ROPEWALK_BYTES_JUDGE=$(<"$work/judge")

# What the runs are decides whether the kept digests can be compared with.
what=$(cat "$cases"/* test/e2e/testdata/tiny.yaml "$0" | sha256sum | cut -c 1-12)
failed=0
for name in "${runs[@]}"; do
	for mode in staged interleaved; do
		before=$kept/$base-$what-$name-$mode
		[[ -s $before ]] || train "$kept/$base" "$work/before" "$name" "$mode" "$before"
		train "$work/head" "$work/after" "$name" "$mode" "$work/$name-$mode"
		if differ "$before" "$work/$name-$mode" "$name, $mode, ${base:0:12} < > here"; then
			failed=1
		else
			echo "$name, $mode: equal, $(wc -l <"$before") digests"
		fi
	done
	if differ "$work/$name-staged" "$work/$name-interleaved" "$name, staged < > interleaved"; then failed=1; fi
done
exit $failed
