#!/usr/bin/env bash
# Makes .tools/worlds/NAME, a virtual environment with the packages of tools/worlds/NAME.txt, pinned by digest, and
# prints its interpreter. The tests of the environments compare with these packages. An environment is made once, and
# again when its pins or the interpreter change. If tools/worlds/NAME is a folder, its packages are npm's, pinned by the
# digests of package-lock.json, and it prints the folder node_modules.
# Usage: tools/worlds.sh NAME
set -euo pipefail
name=${1:?name a file of tools/worlds without .txt, or a folder}
cd "$(dirname "$0")/.."
pins=$PWD/tools/worlds/$name.txt
home=$PWD/.tools/worlds/$name
if [[ -d tools/worlds/$name ]]; then
	type -P npm >/dev/null || { echo "no npm: install it (Debian: apt-get install npm)" >&2; exit 1; }
	stamp=$({ cat "tools/worlds/$name/package-lock.json"; node --version; } | sha256sum)
	if [[ ! -f $home/stamp || $(<"$home/stamp") != "$stamp" ]]; then
		echo "making .tools/worlds/$name, once…" >&2
		rm -rf "$home"
		mkdir -p "$home"
		cp "tools/worlds/$name/package.json" "tools/worlds/$name/package-lock.json" "$home"
		if ! (cd "$home" && npm ci --ignore-scripts --no-audit --no-fund) >&2; then
			rm -rf "$home" # a folder is complete or missing
			echo "the packages of tools/worlds/$name could not be installed (see above; offline?)" >&2
			exit 1
		fi
		echo "$stamp" >"$home/stamp"
	fi
	echo "$home/node_modules"
	exit
fi
[[ -f $pins ]] || { echo "there is no $pins" >&2; exit 2; }
python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
	echo "no Python 3.11 or later with venv: install one (Debian: apt-get install python3-venv)" >&2
	exit 1
}
stamp=$({ cat "$pins"; python3 -VV; } | sha256sum)
if [[ ! -f $home/stamp || $(<"$home/stamp") != "$stamp" ]]; then
	echo "making .tools/worlds/$name, once…" >&2
	rm -rf "$home"
	mkdir -p "$(dirname "$home")"
	python3 -m venv "$home"
	# Not all packages have wheels: fast-downward-textworld is compiled, with the setuptools of today.
	if ! "$home/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "$pins" >&2; then
		rm -rf "$home" # an environment is complete or missing
		echo "the packages of tools/worlds/$name.txt could not be installed (see above; offline?)" >&2
		exit 1
	fi
	echo "$stamp" >"$home/stamp"
fi
echo "$home/bin/python"
