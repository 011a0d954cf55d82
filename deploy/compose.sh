#!/usr/bin/env bash
# Starts and ends compose.yaml:
#   compose.sh up [ARGUMENT…]     makes secrets and certificates once, then: compose up --detach ARGUMENT…
#   compose.sh down [ARGUMENT…]   compose down ARGUMENT… (--volumes also deletes the data)
#   compose.sh config             prints what compose reads
#   compose.sh env                prints the variables with which `ropewalk run` uses it
# COMPOSE is the command (docker compose, else podman-compose), STATE the folder of secrets (.ropewalk/compose).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
state=${STATE:-$here/../.ropewalk/compose}
umask 077
mkdir -p "$state/targets"
state=$(cd "$state" && pwd)

compose=${COMPOSE:-}
if [[ -z $compose ]]; then
	if docker compose version >/dev/null 2>&1; then compose="docker compose"; else compose=podman-compose; fi
fi

if [[ ! -f $state/env ]]; then
	secret() { openssl rand -hex 24; }
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=ropewalk compose" \
		-keyout "$state/ca.key" -out "$state/ca.crt" 2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=sandbox" -keyout "$state/tls.key" \
		-out "$state/tls.csr" 2>/dev/null
	openssl x509 -req -in "$state/tls.csr" -CA "$state/ca.crt" -CAkey "$state/ca.key" -CAcreateserial -days 3650 \
		-extfile <(echo "subjectAltName=DNS:sandbox,DNS:localhost") -out "$state/tls.crt" 2>/dev/null
	secret >"$state/token"
	chmod 644 "$state"/{ca.crt,tls.crt,tls.key,token} # the containers' user reads them; the folder is closed to others
	for job in worker monitor; do
		port=9463 hosts='worker-cpu worker-rollout worker-sandbox worker-gpu'
		[[ $job == worker ]] || port=9464 hosts=monitor
		for host in $hosts; do printf '"%s:%s"\n' "$host" "$port"; done | paste -sd, |
			sed 's/^/[{"targets": [/; s/$/]}]/' >"$state/targets/$job.json"
	done
	chmod -R u=rwX,go=rX "$state/targets"
	cat >"$state/env.new" <<-EOF
		S3_ACCESS_KEY=ropewalk$(openssl rand -hex 6)
		S3_SECRET_KEY=$(secret)
		POSTGRES_PASSWORD=$(secret)
		SANDBOX_TOKEN=$(<"$state/token")
	EOF
	mv "$state/env.new" "$state/env"
fi
set -a
# shellcheck source=/dev/null
source "$state/env"
SECRETS=$state PROFILE=$here/containers/seccomp-sandbox.json
set +a

cd "$here"
case ${1:-} in
up) shift; exec $compose -p ropewalk -f compose.yaml up --detach "$@" ;;
down) shift; exec $compose -p ropewalk -f compose.yaml down "$@" ;;
config) exec $compose -p ropewalk -f compose.yaml config ;;
env) printf '%s\n' "TEMPORAL_ADDRESS=127.0.0.1:${TEMPORAL_PORT:-7233}" ROPEWALK_NO_WORKER=1 \
	"AWS_ENDPOINT_URL_S3=http://127.0.0.1:${S3_PORT:-7070}" "AWS_ACCESS_KEY_ID=$S3_ACCESS_KEY" \
	"AWS_SECRET_ACCESS_KEY=$S3_SECRET_KEY" ;;
*) echo "usage: compose.sh up|down|config|env" >&2; exit 2 ;;
esac
