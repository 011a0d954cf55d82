#!/usr/bin/env bash
# Makes a release of the commit that is checked out, for this machine's architecture, in .ropewalk/release: an archive
# of the program with its recipes, pages and deployment files, bills of materials, and SHA256SUMS. It builds everything
# twice, in two folders, and fails if the results differ. The version is Git's: the tag of the commit, or what Go makes
# of the commit where it has none. A commit with a tag holds its recorded histories (tools/pin-histories.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -z $(git status --porcelain) ]] || { echo "there are changes that are not committed" >&2; exit 1; }
out=$PWD/.ropewalk/release
commit=$(git rev-parse HEAD) # what is committed meanwhile is not part of it
version=$(git describe --tags --exact-match --match 'v[0-9]*' "$commit" 2>/dev/null || echo "${commit:0:12}")
if [[ $version == v* && -z $(git ls-tree "$commit" "workflows/testdata/$version/") ]]; then
	echo "the histories of $version are not pinned: tools/pin-histories.sh $version, and commit them" >&2
	exit 1
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH LC_ALL=C
name=ropewalk-$version-linux-$(go env GOARCH)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make_archive FOLDER: checks the commit out there, builds it, and packs it as FOLDER.tar.gz.
make_archive() {
	local folder=$1
	git clone -q --no-hardlinks . "$folder/src"
	git -C "$folder/src" checkout -q --detach "$commit"
	mkdir "$folder/$name"
	(cd "$folder/src" && go build -trimpath -buildvcs=true -o "$folder/$name/ropewalk" ./cmd/ropewalk)
	cp -r "$folder"/src/{LICENSE,README.md,CHANGELOG.md,SECURITY.md,DESIGN.md,docs,recipes,deploy,temporal.yaml} \
		"$folder/$name/"
	find "$folder/$name" -name '*.go' -delete
	tar -C "$folder" --sort=name --numeric-owner --owner=0 --group=0 --mtime="@$SOURCE_DATE_EPOCH" \
		--mode=u=rwX,go=rX -cf - "$name" | gzip -n >"$folder.tar.gz"
}

mkdir "$work/first" "$work/second-in-a-folder-with-a-longer-name"
make_archive "$work/first"
make_archive "$work/second-in-a-folder-with-a-longer-name"
cmp "$work/first.tar.gz" "$work/second-in-a-folder-with-a-longer-name.tar.gz" ||
	{ echo "two builds of the same commit differ" >&2; exit 1; }

for build in "$work"/*/; do tools/go-sbom.sh "$build$name/ropewalk" "${build%/}.cdx.json"; done
cmp "$work"/*.cdx.json || { echo "the bills of materials of two builds of the same commit differ" >&2; exit 1; }

rm -rf "$out"
mkdir -p "$out"
cp "$work/first.tar.gz" "$out/$name.tar.gz"
cp "$work/first.cdx.json" "$out/$name.cdx.json"
(cd "$out" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
"$work/first/$name/ropewalk" version
