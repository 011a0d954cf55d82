#!/usr/bin/env bash
# Builds the images twice, which must give the same images, and runs the sandbox's doctor in the image of sandbox nodes:
# with seccomp-sandbox.json it must grant tier full without capabilities, as another user than root, on a read-only
# root; with the engine's own profile it must grant landlock at least. It needs podman (on Debian: apt-get install
# podman buildah crun debootstrap) and root. TAG is that of build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tag=${TAG:-dev}

# The runtime refuses hosts that have both versions of control groups: it then sees version 2 alone.
if [[ -z ${IN_VERSION_2:-} && -d /sys/fs/cgroup/unified ]]; then
	IN_VERSION_2=1 exec unshare -m bash -c 'umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
		exec "$@"' x "$0" "$@"
fi

podman() { command podman --cgroup-manager=cgroupfs --events-backend=file "$@" 2> >(grep -v 'level=warning' >&2); }
ids() {
	podman images --no-trunc --filter "reference=localhost/ropewalk-*:$tag" --format '{{.Repository}} {{.Id}}' | sort
}

export ENGINE=${ENGINE:-buildah} BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} TAG=$tag
"$here/build.sh" >/dev/null
first=$(ids)
"$here/build.sh" >/dev/null
diff <(echo "$first") <(ids) || { echo "two builds of the same files differ" >&2; exit 1; }
echo "$first"

# doctor FLAG…: the strongest tier that the sandbox's image grants.
doctor() {
	podman run --rm --network=none --cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 \
		--cap-drop=all --security-opt no-new-privileges --read-only --tmpfs /tmp "$@" \
		"localhost/ropewalk-sandbox:$tag" \
		sandbox doctor --min-tier rlimits --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["tier"])'
}
got=$(doctor --security-opt "seccomp=$here/seccomp-sandbox.json")
echo "with seccomp-sandbox.json: tier $got"
[[ $got == full ]] || { echo "want full" >&2; exit 1; }
got=$(doctor)
echo "with the engine's own profile: tier $got"
[[ $got == full || $got == landlock ]] || { echo "want landlock at least" >&2; exit 1; }
podman run --rm --network=none --cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --cap-drop=all \
	--read-only "localhost/ropewalk-worker:$tag" version
