#!/usr/bin/env bash
# Packs gpu-check, with the engine in it, into .ropewalk/gpu-bundle.tar.gz. It runs on a machine that has a python3 with
# torch and needs nothing else. Prints the size of the bundle, and fails if it is larger than 48 MiB.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer" >&2; exit 1; }
command -v "${CC:-cc}" >/dev/null || {
	echo "a C compiler is missing (NVML is called through one): on Debian: apt-get install gcc libc6-dev" >&2
	exit 1
}

most=$((48 << 20))
out=.ropewalk/gpu-bundle.tar.gz
commit=$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
mkdir -p .ropewalk
folder=$(mktemp -d .ropewalk/gpu-bundle.XXXXXX)
trap 'rm -rf "$folder"' EXIT

# Go's own resolver and user look-up, so that libc is all that is loaded. NVML is looked up when it is first called: its
# names must not be bound at the start, as some toolchains would have it.
CGO_ENABLED=1 go build -trimpath -tags netgo,osusergo \
	-ldflags "-s -w -X main.commit=$commit -extldflags=-Wl,-z,lazy" -o "$folder/gpu-bundle/gpu-check" ./cmd/gpu-check
cp cmd/gpu-check/bundle/README "$folder/gpu-bundle/README"
# The same files, the same bytes.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$folder" -cf - gpu-bundle |
	gzip -9n >"$folder/packed"
size=$(stat -c %s "$folder/packed")
if ((size > most)); then
	echo "the bundle has $size bytes, more than the $most that it may have" >&2
	exit 1
fi
mv "$folder/packed" "$out"
printf '%s: %.1f MiB of %d, commit %s\n' "$out" "$(awk "BEGIN{print $size/1048576}")" $((most >> 20)) "$commit"
