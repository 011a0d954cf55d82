#!/usr/bin/env bash
# Makes .tools/sandbox-python, a virtual environment with numpy and sympy for the sandbox's calls, pinned by digest in
# sandbox-python.txt, and prints where its interpreter is. It is made once, and again when the pins or the interpreter
# change. ROPEWALK_SANDBOX_PYTHON names another interpreter that has both; nothing is made then.
set -euo pipefail
cd "$(dirname "$0")"
pins=$PWD/sandbox-python.txt
home=$(cd .. && pwd)/.tools/sandbox-python
imports='import numpy, sympy; print("numpy", numpy.__version__ + ", sympy", sympy.__version__)'

if [[ -n ${ROPEWALK_SANDBOX_PYTHON:-} ]]; then
	"$ROPEWALK_SANDBOX_PYTHON" -c "$imports" >/dev/null || {
		echo "ROPEWALK_SANDBOX_PYTHON names $ROPEWALK_SANDBOX_PYTHON, which cannot import numpy and sympy" >&2
		exit 1
	}
	echo "$ROPEWALK_SANDBOX_PYTHON"
	exit 0
fi

# The system's interpreter first: one in a home folder is out of reach of the user that calls run as.
base=
for python in /usr/bin/python3 /usr/local/bin/python3 python3; do
	if "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
		base=$python
		break
	fi
done
if [[ -z $base ]]; then
	echo "no Python 3.11 or later with venv: install one (Debian: apt-get install python3-venv)," \
		"or set ROPEWALK_SANDBOX_PYTHON to an interpreter with numpy and sympy" >&2
	exit 1
fi
stamp=$({ cat "$pins"; "$base" -VV; echo "$base"; } | sha256sum)
if [[ -f $home/stamp && $(<"$home/stamp") == "$stamp" ]]; then
	echo "$home/bin/python"
	exit 0
fi
echo "making .tools/sandbox-python (numpy and sympy for the sandbox), once…" >&2
rm -rf "$home"
mkdir -p "$(dirname "$home")"
"$base" -m venv "$home"
if ! "$home/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: \
	--require-hashes -r "$pins"; then
	rm -rf "$home" # an environment is complete or missing
	echo "numpy and sympy could not be installed (see above; offline?):" \
		"set ROPEWALK_SANDBOX_PYTHON to an interpreter that has both" >&2
	exit 1
fi
"$home/bin/python" -c "$imports" >&2
echo "$stamp" >"$home/stamp"
echo "$home/bin/python"
