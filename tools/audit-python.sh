#!/usr/bin/env bash
# Makes .tools/audit-python, a virtual environment with pip-audit and cyclonedx-bom, pinned by digest in .ci/audit.txt.
# It is made once, and again when the pins change.
set -euo pipefail
cd "$(dirname "$0")/.."
home=.tools/audit-python
stamp=$(cat .ci/audit.txt | sha256sum)
if [[ -f $home/stamp && $(<"$home/stamp") == "$stamp" ]]; then
	exit 0
fi
rm -rf "$home"
mkdir -p .tools
python3 -m venv "$home"
if ! "$home/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r .ci/audit.txt; then
	rm -rf "$home" # never half an environment
	echo "pip-audit and cyclonedx-bom could not be installed (see above)" >&2
	exit 1
fi
echo "$stamp" >"$home/stamp"
