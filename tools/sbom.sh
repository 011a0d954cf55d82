#!/usr/bin/env bash
# Writes software bills of materials in CycloneDX's JSON form to the given folder (default .ropewalk/sbom). go.cdx.json
# lists the modules linked into bin/ropewalk, as the binary itself names them; python-*.cdx.json list the pinned Python
# packages. Only the commit decides what they hold: times are the commit's (or SOURCE_DATE_EPOCH).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-.ropewalk/sbom}
mkdir -p "$out"

tools/go-sbom.sh bin/ropewalk "$out/go.cdx.json"

tools/audit-python.sh
declare -A pins=([ci]=.ci/requirements.txt [sandbox]=tools/sandbox-python.txt [gpu]=gpu/setup/requirements.txt
	[textworld]=tools/worlds/textworld.txt [thefuzz]=tools/worlds/thefuzz.txt
	[mcp]=tools/worlds/mcp.txt [reasoning]=tools/worlds/reasoning.txt [openenv]=tools/worlds/openenv.txt
	[sokoban]=tools/worlds/sokoban.txt [serve]=tools/worlds/serve.txt [trl]=tools/worlds/trl.txt
	[tinker]=tools/worlds/tinker.txt [compose]=tools/worlds/compose.txt)
for name in "${!pins[@]}"; do
	.tools/audit-python/bin/python -m cyclonedx_py requirements --output-reproducible --of JSON \
		-o "$out/python-$name.cdx.json" "${pins[$name]}"
done

python3 - "$out" <<'PY'
import json, pathlib, sys

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.cdx.json")):
    bill = json.loads(path.read_text())
    parts = bill.get("components", [])
    if bill.get("bomFormat") != "CycloneDX" or not parts:
        sys.exit(f"{path} lists no components")
    without = [c["name"] for c in parts if not c.get("version")]
    if without:
        sys.exit(f"{path}: no version of {', '.join(without)}")
    print(f"{path}: {len(parts)} components")
PY
