#!/usr/bin/env bash
# go-sbom.sh PROGRAM FILE writes the modules that are linked into a program, as the program itself names them, to a file
# in CycloneDX's JSON form. Its time is SOURCE_DATE_EPOCH, or else that of the commit that is checked out, so that one
# commit has one file.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 out=$2
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
tools/build.sh cyclonedx-gomod
.tools/cyclonedx-gomod bin -json -noserial -output "$out" "$program"
sed -i "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$(date -u -d "@$epoch" +%FT%TZ)\"/" "$out"
