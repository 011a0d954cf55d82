#!/bin/sh
# Puts the published model of recipes/smollm2.yaml into .tools/models, and prints that folder.
set -eu
folder=$(cd "$(dirname "$0")/.." && pwd)/.tools/models
mkdir -p "$folder"
if [ ! -f "$folder/smollm2-135m-instruct.gguf" ]; then
	ln -sf "$("$(dirname "$0")/tokenizers.sh")/smollm2.gguf" "$folder/smollm2-135m-instruct.gguf"
fi
echo "$folder"
