#!/usr/bin/env bash
# Builds container images from bin/ropewalk and from the file systems of base.sh:
#   build.sh [worker|gpu|sandbox|temporal|s3]…      the first three by default
# ENGINE is buildah, podman or docker (the first that is there); BASES is the folder of base.sh
# (.ropewalk/containers), which is made when it is missing; TAG is the images' tag (dev). The images are
# localhost/ropewalk-worker, -gpu and -sandbox; -temporal and -s3 hold the servers of .tools (make tools), for trials
# without a registry. SBOM is a folder of bills of materials (.ropewalk/sbom: make sbom).
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
bases=${BASES:-$top/.ropewalk/containers} tag=${TAG:-dev} sbom=${SBOM:-$top/.ropewalk/sbom}
kinds=("$@")
((${#kinds[@]})) || kinds=(worker gpu sandbox)
engine=${ENGINE:-}
for one in buildah podman docker; do
	[[ -n $engine ]] || ! command -v $one >/dev/null || engine=$one
done
[[ -n $engine ]] || { echo "none of buildah, podman, docker is here: on Debian: apt-get install buildah" >&2; exit 1; }
[[ -x $top/bin/ropewalk ]] || { echo "bin/ropewalk is missing: make build" >&2; exit 1; }
[[ -f $sbom/go.cdx.json ]] || { echo "$sbom/go.cdx.json is missing: make sbom" >&2; exit 1; }
[[ -f $bases/worker.tar && -f $bases/python.tar ]] || "$(dirname "$0")/base.sh" "$bases"

for kind in "${kinds[@]}"; do
	base=python python=sandbox programs=("$top/bin/ropewalk")
	case $kind in
	worker) base=worker python= ;;
	gpu) python=gpu ;;
	sandbox) ;;
	temporal) base=worker python= programs=("$top/.tools/temporal") ;;
	s3) base=worker python= programs=("$top/.tools/versitygw") ;;
	*) echo "there is no image $kind: worker, gpu, sandbox, temporal, s3" >&2; exit 2 ;;
	esac
	context=$(mktemp -d)
	trap 'rm -rf "$context"' EXIT
	mkdir "$context/sbom"
	cp "$sbom/go.cdx.json" "$bases/debian-$base.cdx.json" "$context/sbom/"
	[[ -z $python || ! -f $sbom/python-$python.cdx.json ]] || cp "$sbom/python-$python.cdx.json" "$context/sbom/"
	cp "$bases/$base.tar" "${programs[@]}" "$context/"
	find "$context" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-1735689600}" {} +
	chmod -R u=rwX,go=rX "$context"
	chmod 755 "$context/$(basename "${programs[0]}")"
	flags=(-f "$top/deploy/containers/Containerfile.$kind" -t "localhost/ropewalk-$kind:$tag"
		--label "org.opencontainers.image.title=ropewalk-$kind"
		--label "org.opencontainers.image.licenses=Apache-2.0" --build-arg "TORCH=${TORCH:-no}")
	case $engine in # an image whose files and history carry no time of its build has the same digest again
	buildah) buildah build --layers=false --timestamp "${SOURCE_DATE_EPOCH:-1735689600}" "${flags[@]}" "$context" ;;
	podman) podman build --layers=false --timestamp "${SOURCE_DATE_EPOCH:-1735689600}" "${flags[@]}" "$context" ;;
	docker) SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1735689600} docker build "${flags[@]}" "$context" ;;
	*) echo "ENGINE is $engine: buildah, podman or docker" >&2; exit 2 ;;
	esac
	rm -rf "$context"
done
