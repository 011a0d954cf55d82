#!/usr/bin/env bash
# Checks that this tree trains the same weights as the commit BASE. It builds both, runs the quickstart with three steps
# and the small versions of three presets with both on this machine, and compares the SHA-256 of each run's final
# weights. It keeps the weights of a commit in .ropewalk/check-bytes, so that a second comparison runs only this tree.
# Usage: tools/check-bytes.sh BASE [RUN…], the runs being quickstart, ppo, sampo-alfworld and spear-alfworld.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} ]] || { echo "name the commit to compare with: make check-bytes BASE=COMMIT" >&2; exit 2; }
base=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "there is no commit $1" >&2; exit 2; }
shift
runs=("$@")
((${#runs[@]})) || runs=(quickstart ppo sampo-alfworld spear-alfworld)
root=$PWD
kept=$root/.ropewalk/check-bytes
mkdir -p "$kept"
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT

# weights BINARY NAME: trains one run in a fresh folder and prints the digest of its last checkpoint's weights.
weights() {
	local binary=$1 name=$2 home file
	home=$(mktemp -d -p "$work")
	local recipe=("presets/$name" --twin) # the smoke recipe on calc
	if [[ $name == quickstart ]]; then
		recipe=(quickstart --set steps=3 --set warm_start.steps=60 --set evaluation.problems=30)
	fi
	if ! (cd "$home" &&
		PATH=$root/.tools:$PATH ROPEWALK_HOME=$home/state "$binary" run "${recipe[@]}" --run-id check --json) \
		>"$home/out" 2>"$home/err"; then
		echo "$binary run ${recipe[*]} failed:" >&2
		tail -n 20 "$home/err" >&2
		return 1
	fi
	file=$(find "$home/state/s3" -path '*/run=check/checkpoints/*' -name model.safetensors | sort | tail -n 1)
	[[ $file ]] || { echo "$binary run ${recipe[*]} left no model.safetensors" >&2; return 1; }
	sha256sum "$file" | cut -d' ' -f1
	rm -rf "$home"
}

if [[ ! -x $kept/$base ]]; then
	echo "building $base"
	git worktree add --quiet --detach "$work/base" "$base"
	go -C "$work/base" build -trimpath -o "$kept/$base" ./cmd/ropewalk
fi
echo "building this tree"
go build -trimpath -o "$work/head" ./cmd/ropewalk

differ=0
for name in "${runs[@]}"; do
	remembered=$kept/$base-$name
	[[ -s $remembered ]] || weights "$kept/$base" "$name" >"$remembered" || { rm -f "$remembered"; exit 1; }
	before=$(<"$remembered")
	after=$(weights "$work/head" "$name")
	if [[ $before == "$after" ]]; then
		echo "$name: equal, $after"
	else
		echo "$name: differs: $before at ${base:0:12}, $after here"
		differ=1
	fi
done
exit $differ
