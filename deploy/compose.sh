#!/usr/bin/env bash
# Starts and ends compose.yaml:
#   compose.sh up [ARGUMENT…]     makes secrets and certificates once, then: compose up --detach ARGUMENT…
#   compose.sh down [ARGUMENT…]   compose down ARGUMENT… (--volumes also deletes the data)
#   compose.sh env                prints the variables with which `ropewalk run` uses it
#   compose.sh COMMAND …          is compose's command: config, ps, logs, restart, start, stop, kill
# COMPOSE is the command: docker compose where its daemon answers, else podman-compose, installed into .tools once.
# STATE is the folder of secrets (.ropewalk/compose).
# IMAGES=local takes the servers' images that `containers/build.sh servers` has made, with the tag TAG (dev). There is
# none of Grafana, which is then left out. COMPOSE_PROFILES=grafana starts it all the same; an empty value leaves it
# out otherwise.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
state=${STATE:-$here/../.ropewalk/compose}
umask 077
mkdir -p "$state/targets"
state=$(cd "$state" && pwd)

compose=${COMPOSE:-}
if [[ -z $compose ]]; then
	if docker compose ls >/dev/null 2>&1; then
		compose="docker compose"
	elif command -v podman >/dev/null; then
		compose="$("$here/../tools/worlds.sh" compose) -m podman_compose"
	else
		echo "neither docker compose nor podman is here: on Debian: apt-get install podman crun aardvark-dns" >&2
		exit 1
	fi
fi

secret() { openssl rand -hex 24; }
# certificate NAME HOST writes NAME.key and NAME.crt, which is valid for HOST and this machine.
certificate() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" -keyout "$state/$1.key" \
		-out "$state/$1.csr" 2>/dev/null
	openssl x509 -req -in "$state/$1.csr" -CA "$state/ca.crt" -CAkey "$state/ca.key" -CAcreateserial -days 3650 \
		-extfile <(echo "subjectAltName=DNS:$2,DNS:localhost") -out "$state/$1.crt" 2>/dev/null
	chmod 644 "$state/$1."{crt,key} # the containers' user reads them; the folder is closed to others
}
if [[ ! -f $state/env ]]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=ropewalk compose" \
		-keyout "$state/ca.key" -out "$state/ca.crt" 2>/dev/null
	certificate tls sandbox
	secret >"$state/token"
	chmod 644 "$state"/{ca.crt,token}
	cat >"$state/env.new" <<-EOF
		S3_ACCESS_KEY=ropewalk$(openssl rand -hex 6)
		S3_SECRET_KEY=$(secret)
		POSTGRES_PASSWORD=$(secret)
		SANDBOX_TOKEN=$(<"$state/token")
	EOF
	mv "$state/env.new" "$state/env"
fi
# targets JOB HOST:PORT… writes what Prometheus reads of one kind of process.
targets() {
	local job=$1
	shift
	printf '"%s"\n' "$@" | paste -sd, | sed 's/^/[{"targets": [/; s/$/]}]/' >"$state/targets/$job.json"
}
if [[ ! -f $state/targets/monitor.json ]]; then # made last
	targets worker worker-{cpu,rollout,sandbox,gpu}:9463
	targets monitor monitor:9464
	chmod -R u=rwX,go=rX "$state/targets"
fi
set -a
# shellcheck source=/dev/null
source "$state/env"
SECRETS=$state PROFILE=$here/containers/seccomp-sandbox.json
case ${IMAGES:-} in
'') COMPOSE_PROFILES=${COMPOSE_PROFILES-grafana} ;;
local)
	COMPOSE_PROFILES=${COMPOSE_PROFILES-}
	local=localhost/ropewalk
	POSTGRES_IMAGE=${POSTGRES_IMAGE:-$local-postgres:${TAG:-dev}}
	TEMPORAL_IMAGE=${TEMPORAL_IMAGE:-$local-temporal:${TAG:-dev}}
	S3_IMAGE=${S3_IMAGE:-$local-s3:${TAG:-dev}}
	PROMETHEUS_IMAGE=${PROMETHEUS_IMAGE:-$local-prometheus:${TAG:-dev}}
	ALERTMANAGER_IMAGE=${ALERTMANAGER_IMAGE:-$local-alertmanager:${TAG:-dev}}
	;;
*) echo "IMAGES is $IMAGES: local or nothing" >&2; exit 2 ;;
esac
# The other commands are for what the last up has started.
if [[ ${1:-} == up ]]; then
	echo "$COMPOSE_PROFILES" >"$state/profiles"
elif [[ -f $state/profiles ]]; then
	COMPOSE_PROFILES=$(<"$state/profiles")
fi
set +a

cd "$here"
case ${1:-} in
up) shift; exec $compose -p ropewalk -f compose.yaml up --detach "$@" ;;
down)
	shift
	# podman-compose ends all containers at once. Temporal would then wait for a database that is gone.
	if [[ $compose == *podman* ]]; then
		for services in 'worker-cpu worker-rollout worker-sandbox worker-gpu monitor' temporal; do
			# shellcheck disable=SC2086 # a list
			$compose -p ropewalk -f compose.yaml stop $services
		done
	fi
	exec $compose -p ropewalk -f compose.yaml down "$@"
	;;
config | ps | logs | restart | start | stop | kill) exec $compose -p ropewalk -f compose.yaml "$@" ;;
env) printf '%s\n' "TEMPORAL_ADDRESS=127.0.0.1:${TEMPORAL_PORT:-7233}" ROPEWALK_NO_WORKER=1 \
	"AWS_ENDPOINT_URL_S3=http://127.0.0.1:${S3_PORT:-7070}" "AWS_ACCESS_KEY_ID=$S3_ACCESS_KEY" \
	"AWS_SECRET_ACCESS_KEY=$S3_SECRET_KEY" ;;
*) echo "usage: compose.sh up|down|env|config|ps|logs|restart|start|stop|kill" >&2; exit 2 ;;
esac
