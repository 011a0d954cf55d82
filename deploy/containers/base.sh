#!/usr/bin/env bash
# Makes the root file systems that the container files start from, out of Debian's packages, without a registry:
#   base.sh OUT             writes OUT/worker.tar (libraries and certificates alone) and OUT/python.tar (with a Python,
#                           numpy and sympy), with OUT/debian-worker.cdx.json and OUT/debian-python.cdx.json, what is
#                           in them
#   base.sh OUT SERVER…     writes the same for servers of Debian: postgres, prometheus, alertmanager
# It needs root, debootstrap and, for the first form, pip. SUITE and MIRROR choose the packages (bookworm, Debian's
# own). Equal packages give equal files: times are those of SOURCE_DATE_EPOCH, owners are numbers, names are sorted.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: base.sh OUT [postgres|prometheus|alertmanager]…}
shift
suite=${SUITE:-bookworm} mirror=${MIRROR:-http://deb.debian.org/debian}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1735689600} LC_ALL=C
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for program in debootstrap python3; do
	command -v $program >/dev/null || { echo "$program is missing: on Debian: apt-get install $program" >&2; exit 1; }
done
((EUID == 0)) || { echo "debootstrap needs root" >&2; exit 1; }

# system ROOT PACKAGE…: a small Debian with the packages.
system() {
	local root=$1 packages
	shift
	packages=$(IFS=,; echo "$*")
	mkdir -p "$work/cache"
	debootstrap --variant=minbase --cache-dir="$work/cache" --include="$packages" "$suite" "$root" "$mirror" \
		>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
}

# clean ROOT: no package manager's state but the list of what is there, no documentation, no caches, no set-user-id
# programs. The user of the program and its folder are added.
clean() {
	local root=$1
	rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/* "$root"/var/log/* \
		"$root"/usr/share/{doc,man,info,locale} "$root"/tmp/* "$root"/etc/resolv.conf "$root"/etc/hostname \
		"$root"/etc/machine-id "$root"/dev/* "$root"/run/*
	find "$root" -xdev -type f -perm /6000 -exec chmod ug-s {} +
	find "$root" -name __pycache__ -type d -prune -exec rm -rf {} +
	find "$root" -name '*-old' -path '*/var/*' -delete
	rm -f "$root"/etc/{passwd,group,shadow,gshadow}-
	echo 'ropewalk:x:65532:65532:Ropewalk:/var/lib/ropewalk:/usr/sbin/nologin' >>"$root/etc/passwd"
	echo 'ropewalk:x:65532:' >>"$root/etc/group"
	install -d -m 700 -o 65532 -g 65532 "$root/var/lib/ropewalk"
}

# bill NAME ROOT PACKAGE…: writes what is in a file system as CycloneDX's JSON; without packages, all that are there.
bill() {
	local name=$1 from=$2
	shift 2
	dpkg-query --admindir="$from/var/lib/dpkg" -W -f '${Package}\t${Version}\t${Architecture}\n' "$@" |
		python3 -c '
import json, sys
parts = [dict(zip(("name", "version", "architecture"), line.split("\t"))) for line in sys.stdin.read().splitlines()]
print(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": [
    {"type": "library", "name": p["name"], "version": p["version"],
     "purl": "pkg:deb/debian/{name}@{version}?arch={architecture}".format(**p)} for p in parts]}, indent=1))' \
		>"$out/debian-$name.cdx.json"
}

pack() { # NAME ROOT
	tar -C "$2" --sort=name --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --clamp-mtime \
		--pax-option=delete=atime,delete=ctime -cf "$out/$1.tar" .
}

# The servers of Debian. Their data is in a folder of the program's user, for a volume.
for server in "$@"; do
	root=$work/$server
	case $server in
	postgres) packages=(postgresql tzdata) data=/var/lib/postgresql/data ;;
	prometheus) packages=(prometheus ca-certificates tzdata) data=/prometheus ;;
	alertmanager) packages=(prometheus-alertmanager ca-certificates tzdata) data=/alertmanager ;;
	*) echo "there is no server $server: postgres, prometheus, alertmanager" >&2; exit 2 ;;
	esac
	system "$root" "${packages[@]}"
	rm -rf "$root"/var/lib/postgresql/* "$root"/etc/postgresql/* # a database that the package has made
	clean "$root"
	install -d -m 700 -o 65532 -g 65532 "$root$data"
	bill "$server" "$root"
	pack "$server" "$root"
	rm -rf "$root"
	(cd "$out" && sha256sum "$server.tar")
done
(($# == 0)) || exit 0

root=$work/python
system "$root" ca-certificates libstdc++6 python3 tzdata
python=$(chroot "$root" python3 -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')
"${PIP_PYTHON:-python3}" -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-compile \
	--only-binary :all: --python-version "$python" --implementation cp --require-hashes \
	--target "$root/usr/local/lib/python$python/dist-packages" -r "$here/../../tools/sandbox-python.txt"
clean "$root"
bill python "$root"
pack python "$root"

# The worker's file system: the files of a few packages, and no shell.
small=$work/worker packages=(libc6 libgcc-s1 libstdc++6 gcc-12-base ca-certificates base-files netbase tzdata)
have=()
for package in "${packages[@]}"; do
	[[ -f $root/var/lib/dpkg/info/$package.list || -f $root/var/lib/dpkg/info/$package:amd64.list ||
		-f $root/var/lib/dpkg/info/$package:arm64.list ]] && have+=("$package")
done
mkdir "$small"
for package in "${have[@]}"; do
	cat "$root"/var/lib/dpkg/info/"$package".list "$root"/var/lib/dpkg/info/"$package":*.list 2>/dev/null || true
done | sed -E 's#^/##; s#^(lib|lib64|bin|sbin)/#usr/\1/#; /^(\.|lib|lib64|bin|sbin)?$/d' | sort -u |
	while read -r file; do # of the merged /usr; what was removed above is left out
		if [[ -e $root/$file || -L $root/$file ]]; then echo "$file"; fi
	done >"$work/files"
tar -C "$root" --no-recursion -cf - -T "$work/files" bin lib lib64 sbin usr/lib64 etc/passwd etc/group \
	var/lib/ropewalk tmp | tar -C "$small" -xf -
tar -C "$root" -cf - etc/ssl/certs | tar -C "$small" -xf -
rm -f "$small"/usr/sbin/* # update-ca-certificates is a script, and there is no shell
bill worker "$root" "${have[@]}"
pack worker "$small"
(cd "$out" && sha256sum worker.tar python.tar)
