#!/usr/bin/env bash
# Starts and ends compose.yaml:
#   compose.sh up [ARGUMENT…]     makes secrets and certificates once, then: compose up --detach ARGUMENT…
#   compose.sh down [ARGUMENT…]   compose down ARGUMENT… (--volumes also deletes the data)
#   compose.sh env [ROLE]         prints the variables with which commands use it: as operator, reader or owner
#   compose.sh pin                notes the digests of the images that are here; later calls take no others
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
if [[ ! -f $state/token ]]; then # made last
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=ropewalk compose" \
		-keyout "$state/ca.key" -out "$state/ca.crt" 2>/dev/null
	certificate tls sandbox
	secret >"$state/token.new"
	chmod 644 "$state"/{ca.crt,token.new}
	mv "$state/token.new" "$state/token"
fi
# keep NAME VALUE keeps a secret, unless an earlier call has.
touch "$state/env"
keep() { grep -q "^$1=" "$state/env" || echo "$1=$2" >>"$state/env"; }
keep S3_ACCESS_KEY "ropewalk$(openssl rand -hex 6)"
for name in S3_SECRET_KEY WORKER_SECRET_KEY OPERATOR_SECRET_KEY READER_SECRET_KEY POSTGRES_PASSWORD \
	GRAFANA_PASSWORD; do
	keep $name "$(secret)"
done
keep SANDBOX_TOKEN "$(<"$state/token")"
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
'')
	COMPOSE_PROFILES=${COMPOSE_PROFILES-grafana}
	# shellcheck source=/dev/null
	[[ ! -f $state/images ]] || source "$state/images"
	;;
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
WORKER_IMAGE=${WORKER_IMAGE:-${REGISTRY:-localhost}/ropewalk-worker:${TAG:-dev}}
SANDBOX_IMAGE=${SANDBOX_IMAGE:-${REGISTRY:-localhost}/ropewalk-sandbox:${TAG:-dev}}
# The accounts of the S3 server, and what each may do there.
mkdir -p "$state/s3"
account() { printf '"%s": {"access": "%s", "secret": "%s", "role": "user"}' "$1" "$1" "$2"; }
echo "{\"accessAccounts\": {$(account worker "$WORKER_SECRET_KEY"), $(account operator "$OPERATOR_SECRET_KEY")," \
	"$(account reader "$READER_SECRET_KEY")}}" >"$state/s3/users.json.new"
mv "$state/s3/users.json.new" "$state/s3/users.json" # the server may be reading it
"$here/roles/bucket-policy.py" reader=reader operator=operator worker=worker >"$state/policy.json"
chmod -R u=rwX,go=rX "$state/s3" "$state/policy.json"
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
env)
	case ${2:-operator} in
	operator) key=operator secret=$OPERATOR_SECRET_KEY ;;
	reader) key=reader secret=$READER_SECRET_KEY ;;
	owner) key=$S3_ACCESS_KEY secret=$S3_SECRET_KEY ;;
	*) echo "there is no role $2: operator, reader, owner" >&2; exit 2 ;;
	esac
	printf '%s\n' "TEMPORAL_ADDRESS=127.0.0.1:${TEMPORAL_PORT:-7233}" ROPEWALK_NO_WORKER=1 \
		"AWS_ENDPOINT_URL_S3=http://127.0.0.1:${S3_PORT:-7070}" "AWS_ACCESS_KEY_ID=$key" "AWS_SECRET_ACCESS_KEY=$secret"
	;;
pin)
	engine=podman
	[[ $compose == *podman* ]] || engine=docker
	sed -nE 's/^ *image: \$\{([A-Z0-9]+_IMAGE):[-?]([^}]*)\}$/\1 \2/p' compose.yaml | sort -u |
		while read -r name default; do
			image=${!name:-$default}
			[[ $image != localhost/* ]] || continue # made here
			repository=${image%@*}
			[[ ${repository##*/} != *:* ]] || repository=${repository%:*}
			digest=$($engine image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$image" |
				sed -n 's/.*@//p')
			[[ -n $digest ]] || { echo "$image has no digest: pull it first" >&2; exit 1; }
			echo "$name=\${$name:-$repository@${digest%%$'\n'*}}"
		done >"$state/images.new"
	mv "$state/images.new" "$state/images"
	cat "$state/images"
	;;
*) echo "usage: compose.sh up|down|env|pin|config|ps|logs|restart|start|stop|kill" >&2; exit 2 ;;
esac
