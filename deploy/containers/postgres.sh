#!/bin/bash
# Makes PostgreSQL's files at the first start, then starts it. POSTGRES_USER and POSTGRES_PASSWORD are the superuser's.
set -euo pipefail
umask 077
programs=$(echo /usr/lib/postgresql/*/bin)
data=/var/lib/postgresql/data/main
if [[ ! -d $data ]]; then # under another name until they are whole
	rm -rf "$data.new"
	"$programs/initdb" --pgdata "$data.new" --username "${POSTGRES_USER:?}" --auth scram-sha-256 --encoding UTF8 \
		--locale C --pwfile <(echo "${POSTGRES_PASSWORD:?}")
	echo 'host all all all scram-sha-256' >>"$data.new/pg_hba.conf"
	mv "$data.new" "$data"
fi
exec "$programs/postgres" -D "$data" -c 'listen_addresses=*' -c unix_socket_directories=/tmp "$@"
