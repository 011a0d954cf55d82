#!/usr/bin/env bash
# Pins the recorded histories of workflows to a release: copies workflows/testdata/*.json to workflows/testdata/VERSION,
# where the tests replay them for as long as a run of that release may be open. A release needs them (tools/release.sh).
set -euo pipefail
cd "$(dirname "$0")/../workflows/testdata"
[[ ${1:-} =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "usage: tools/pin-histories.sh vMAJOR.MINOR.PATCH" >&2; exit 2; }
[[ ! -e $1 ]] || { echo "$1: its histories are pinned already" >&2; exit 1; }
mkdir "$1"
cp -- *.json "$1/"
