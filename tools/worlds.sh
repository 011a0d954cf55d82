#!/usr/bin/env bash
# Makes .tools/worlds/NAME, a virtual environment with the packages of tools/worlds/NAME.txt, pinned by digest, and
# prints its interpreter. The tests of the environments and of the server compare with these packages. An environment
# is made once, and again when its pins or the interpreter change. If tools/worlds/NAME is a folder, its packages are
# npm's, pinned by the digests of package-lock.json, and it prints the folder node_modules.
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
# The oldest Python that will do: 11 = 3.11, or what the pins say.
least=$(sed -n 's/^# Wants Python 3\.\([0-9]*\)\.$/\1/p' "$pins")
least=${least:-11}
python=
for candidate in python3 python3.{12,13,14} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.{12,13,14}*/bin/python3; do
	if "$candidate" -c "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, $least))" 2>/dev/null; then
		python=$candidate
		break
	fi
done
if [[ -z $python ]]; then
	echo "no Python 3.$least or later with venv: install one (Debian: apt-get install python3-venv)" >&2
	exit 1
fi
stamp=$({ cat "$pins"; "$python" -VV; } | sha256sum)
if [[ ! -f $home/stamp || $(<"$home/stamp") != "$stamp" ]]; then
	echo "making .tools/worlds/$name, once…" >&2
	rm -rf "$home"
	mkdir -p "$(dirname "$home")"
	"$python" -m venv "$home"
	# The file names everything that is needed; without --no-deps, pip refuses a package that is wanted with an extra.
	# Not all packages have wheels: fast-downward-textworld is compiled, with the setuptools of today.
	if ! "$home/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r "$pins" >&2
	then
		rm -rf "$home" # an environment is complete or missing
		echo "the packages of tools/worlds/$name.txt could not be installed (see above; offline?)" >&2
		exit 1
	fi
	echo "$stamp" >"$home/stamp"
fi
echo "$home/bin/python"
