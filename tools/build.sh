#!/usr/bin/env bash
# Puts the programs named as arguments into .tools/, built from the versions that a go.mod pins:
# servers from this folder's, linters from lint/'s. What is on PATH (servers only) or built already
# is left alone, so that a second call takes no time.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(cd .. && pwd)/.tools
unset GOEXPERIMENT # the project's own; these programs are built as their authors do

# name: package, module folder, what to tell
declare -A package=(
	[temporal]=github.com/temporalio/cli/cmd/temporal
	[versitygw]=github.com/versity/versitygw/cmd/versitygw
	[staticcheck]=honnef.co/go/tools/cmd/staticcheck
	[workflowcheck]=go.temporal.io/sdk/contrib/tools/workflowcheck
)
declare -A folder=([temporal]=. [versitygw]=. [staticcheck]=lint [workflowcheck]=lint)
declare -A note=(
	[temporal]="Temporal's server and web UI, about 4 minutes on two cores"
	[versitygw]="the S3 server, about 2 minutes on two cores"
	[staticcheck]="a linter, half a minute"
	[workflowcheck]="a linter for workflow code, seconds"
)

for name in "$@"; do
	if [[ ${folder[$name]} == . ]] && command -v "$name" >/dev/null; then
		continue # the user's own
	fi
	if [[ -x $bin/$name && ! ${folder[$name]}/go.sum -nt $bin/$name ]]; then
		continue
	fi
	if ! command -v go >/dev/null; then
		echo "$name is missing, and so is Go to build it: install one of them" >&2
		exit 1
	fi
	echo "building $name (${note[$name]}) into .tools/, once…"
	mkdir -p "$bin"
	(cd "${folder[$name]}" && go build -trimpath -o "$bin/$name.new" "${package[$name]}")
	mv "$bin/$name.new" "$bin/$name" # never half a program
	touch "$bin/$name"
	echo "built $name in ${SECONDS}s"
	SECONDS=0
done
