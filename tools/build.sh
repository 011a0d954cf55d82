#!/usr/bin/env bash
# Puts the programs named as arguments into .tools/, built from the versions that a go.mod pins:
# servers from this folder's, what audits modules from lint/'s, Helm from helm/'s, Temporal's production server from
# temporal-server/'s, Kubernetes' programs from kubernetes/'s, an OpenTelemetry Collector from otelcol/'s. What is
# on PATH (servers only) or built already is left alone, so that a second call takes no time. `build.sh --download
# NAME…` only fetches the servers' modules, so that the network works while the processor compiles something else.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(cd .. && pwd)/.tools
umask 022 # the stack refuses programs that other users could replace

# name: package, module folder, what to tell
declare -A package=(
	[temporal]=github.com/temporalio/cli/cmd/temporal
	[versitygw]=./versitygw
	[govulncheck]=golang.org/x/vuln/cmd/govulncheck
	[cyclonedx-gomod]=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
	[helm]=helm.sh/helm/v3/cmd/helm
	[temporal-server]=go.temporal.io/server/cmd/server
	[temporal-sql-tool]=go.temporal.io/server/cmd/tools/sql
	[kube-apiserver]=k8s.io/kubernetes/cmd/kube-apiserver
	[kubectl]=k8s.io/kubernetes/cmd/kubectl
	[otelcol]=github.com/ropewalk/ropewalk/tools/otelcol
)
declare -A folder=([temporal]=. [versitygw]=. [govulncheck]=lint [cyclonedx-gomod]=lint
	[helm]=helm [temporal-server]=temporal-server [temporal-sql-tool]=temporal-server
	[kube-apiserver]=kubernetes [kubectl]=kubernetes [otelcol]=otelcol)
declare -A note=(
	[temporal]="Temporal's server and web UI, minutes"
	[versitygw]="the S3 server, a minute"
	[govulncheck]="looks up known vulnerabilities, seconds"
	[cyclonedx-gomod]="writes the list of linked modules, seconds"
	[helm]="renders the chart, minutes"
	[temporal-server]="Temporal's server for real databases, minutes"
	[temporal-sql-tool]="creates that server's tables, seconds"
	[kube-apiserver]="Kubernetes' API server, minutes"
	[kubectl]="its client, a minute"
	[otelcol]="an OpenTelemetry Collector, minutes"
)

# missing prints the names among its arguments that have to be built.
missing() {
	local name
	for name in "$@"; do
		[[ ${folder[$name]} == . ]] && command -v "$name" >/dev/null && continue # the user's own
		[[ -x $bin/$name && ! ${folder[$name]}/go.sum -nt $bin/$name && ! $name/main.go -nt $bin/$name ]] && continue
		echo "$name"
	done
}

# The servers run without debugging information: making it takes a seventh of the compiler's time. The
# standard library is built as the project's own program has it (same GOEXPERIMENT, same flags), once for all.
lean=(-ldflags='-s -w')
for modules in 'github.com/...' 'go.temporal.io/...' 'modernc.org/...' 'google.golang.org/...' 'cloud.google.com/...' \
	'golang.org/...' 'go.opentelemetry.io/...' 'go.uber.org/...'; do
	lean+=("-gcflags=$modules=-dwarf=false")
done

# progress tells four times a minute how far a build is: packages compiled of all. It reads the names that
# go build -v prints.
progress() {
	local all=$1 compiled=0 told=$SECONDS
	while read -r _; do
		compiled=$((compiled + 1))
		if ((SECONDS - told >= 15)); then
			told=$SECONDS
			echo "  $compiled of at most $all packages compiled, ${SECONDS}s"
		fi
	done
}

# build FOLDER FLAGS… -- NAME…: builds programs in one go, so that one's last packages and link overlap
# with the next one's packages.
build() {
	local in=$1 flags=() packages=() name all
	shift
	while [[ $1 != -- ]]; do flags+=("$1"); shift; done
	shift
	for name in "$@"; do
		echo "building $name (${note[$name]}) into .tools/, once…"
		packages+=("${package[$name]}")
	done
	rm -rf "$bin/new"
	mkdir -p "$bin/new"
	SECONDS=0
	(
		cd "$in"
		echo "  fetching modules…"
		all=$(go list -deps "${packages[@]}" | wc -l)
		go build -v -trimpath "${flags[@]}" -o "$bin/new/" "${packages[@]}" \
			2> >(tee "$bin/new/log" | progress "$all") || {
			grep -v '^[A-Za-z0-9./_~-]*$' "$bin/new/log" >&2 || true
			exit 1
		}
	)
	for name in "$@"; do
		mv "$bin/new/${package[$name]##*/}" "$bin/$name" # never half a program
		touch "$bin/$name"
	done
	rm -r "$bin/new"
	echo "built $* in ${SECONDS}s"
}

if [[ ${1:-} == --download ]]; then
	shift
	packages=()
	for name in $(missing "$@"); do packages+=("${package[$name]}"); done
	((${#packages[@]} == 0)) || go list -deps "${packages[@]}" >/dev/null
	exit 0
fi

readarray -t wanted < <(missing "$@")
((${#wanted[@]})) || exit 0
if ! command -v go >/dev/null; then
	echo "${wanted[*]} is missing, and so is Go to build it: install one of them" >&2
	exit 1
fi
servers=() audits=() charts=() clusters=() kubernetes=() collectors=()
for name in "${wanted[@]}"; do
	case ${folder[$name]} in
	.) servers+=("$name") ;;
	helm) charts+=("$name") ;;
	temporal-server) clusters+=("$name") ;;
	kubernetes) kubernetes+=("$name") ;;
	otelcol) collectors+=("$name") ;;
	*) audits+=("$name") ;;
	esac
done
if ((${#servers[@]})); then build . "${lean[@]}" -- "${servers[@]}"; fi
if ((${#clusters[@]})); then build temporal-server "${lean[@]}" -- "${clusters[@]}"; fi
unset GOEXPERIMENT # the project's own; the rest is built as its authors do
if ((${#audits[@]})); then build lint -- "${audits[@]}"; fi
if ((${#charts[@]})); then build helm "${lean[@]}" -- "${charts[@]}"; fi
if ((${#kubernetes[@]})); then build kubernetes -ldflags='-s -w' -- "${kubernetes[@]}"; fi
if ((${#collectors[@]})); then build otelcol -ldflags='-s -w' -- "${collectors[@]}"; fi
