#!/bin/bash
# Creates Temporal's databases and tables, or brings them up to date, then starts the server.
set -euo pipefail
export SQL_PASSWORD=${POSTGRES_PWD:?}
# tool DATABASE ARGUMENT…: Temporal's own tool.
tool() {
	local database=$1
	shift
	temporal-sql-tool --plugin postgres12 --endpoint "${POSTGRES_SEEDS:?}" --port "${DB_PORT:-5432}" \
		--user "${POSTGRES_USER:?}" --database "$database" "$@"
}
for database in temporal:temporal temporal_visibility:visibility; do
	name=${database%:*}
	tries=60 # PostgreSQL may be starting
	until tool "$name" create-database; do
		((--tries)) || exit 1
		sleep 1
	done
	tool "$name" setup-schema --version 0.0
	tool "$name" update-schema --schema-name "postgresql/v12/${database#*:}"
done
exec temporal-server --root /etc/temporal --config . --env cluster --allow-no-auth start
