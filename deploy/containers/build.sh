#!/usr/bin/env bash
# Builds container images from bin/ropewalk and from the file systems of base.sh:
#   build.sh [KIND…]      worker, gpu, sandbox by default
#   build.sh servers      those that take the places of public images in compose.yaml, where no registry can be reached:
#                         postgres, prometheus, alertmanager (Debian's packages), temporal, s3 (programs of .tools)
# ENGINE is buildah, podman or docker (the first that is there); BASES is the folder of base.sh
# (.ropewalk/containers), in which what is missing is made; TAG is the images' tag (dev). The images are
# localhost/ropewalk-KIND. SBOM is a folder of bills of materials (.ropewalk/sbom: make sbom).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
bases=${BASES:-$top/.ropewalk/containers} tag=${TAG:-dev} sbom=${SBOM:-$top/.ropewalk/sbom}
kinds=()
for kind in "${@:-own}"; do
	case $kind in
	own) kinds+=(worker gpu sandbox) ;;
	servers) kinds+=(postgres temporal s3 prometheus alertmanager) ;;
	*) kinds+=("$kind") ;;
	esac
done
engine=${ENGINE:-}
for one in buildah podman docker; do
	[[ -n $engine ]] || ! command -v $one >/dev/null || engine=$one
done
[[ -n $engine ]] || { echo "none of buildah, podman, docker is here: on Debian: apt-get install buildah" >&2; exit 1; }
for kind in "${kinds[@]}"; do
	base=python programs=() others=() bills=()
	case $kind in
	worker) base=worker programs=("$top/bin/ropewalk") bills=(go) ;;
	gpu) programs=("$top/bin/ropewalk") bills=(go python-gpu) ;;
	sandbox) programs=("$top/bin/ropewalk") bills=(go python-sandbox) ;;
	postgres) base=postgres programs=("$here/postgres.sh") ;;
	prometheus | alertmanager) base=$kind ;;
	temporal)
		programs=("$top/.tools/temporal-server" "$top/.tools/temporal-sql-tool" "$here/temporal.sh")
		others=("$here/temporal.yaml")
		;;
	s3) base=worker programs=("$top/.tools/versitygw") ;;
	*)
		echo "there is no image $kind: worker, gpu, sandbox, postgres, temporal, s3, prometheus, alertmanager" >&2
		exit 2
		;;
	esac
	for file in "${programs[@]}"; do
		[[ -x $file ]] && continue
		echo "$file is missing: make build; make tools; tools/build.sh temporal-server temporal-sql-tool" >&2
		exit 1
	done
	if [[ ! -f $bases/$base.tar ]]; then
		case $base in
		worker | python) "$here/base.sh" "$bases" ;;
		*) "$here/base.sh" "$bases" "$base" ;;
		esac
	fi
	context=$(mktemp -d)
	trap 'rm -rf "$context"' EXIT
	mkdir "$context/sbom"
	cp "$bases/debian-$base.cdx.json" "$context/sbom/"
	for bill in "${bills[@]}"; do
		[[ -f $sbom/$bill.cdx.json ]] || { echo "$sbom/$bill.cdx.json is missing: make sbom" >&2; exit 1; }
		cp "$sbom/$bill.cdx.json" "$context/sbom/"
	done
	cp "$bases/$base.tar" "${programs[@]}" "${others[@]}" "$context/"
	find "$context" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-1735689600}" {} +
	chmod -R u=rwX,go=rX "$context"
	for file in "${programs[@]}"; do chmod 755 "$context/$(basename "$file")"; done
	flags=(-f "$here/Containerfile.$kind" -t "localhost/ropewalk-$kind:$tag"
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
