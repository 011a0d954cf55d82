package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2" // the driver "duckdb"
)

// open starts an empty database in memory that neither installs nor loads extensions.
func open() (*sql.DB, error) {
	db, err := sql.Open("duckdb", "?autoinstall_known_extensions=false&"+
		"autoload_known_extensions=false&allow_community_extensions=false")
	if err != nil {
		return nil, fmt.Errorf("start DuckDB: %w", err)
	}
	return db, nil
}

// lockDown leaves DuckDB the files below dirs and nothing else of the machine, for good.
func lockDown(ctx context.Context, conn *sql.Conn, dirs []string) error {
	for _, statement := range []string{
		"SET allowed_directories = " + list(dirs),
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("lock DuckDB down: %w", err)
		}
	}
	return nil
}

// quoted is s as an SQL string.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// closing adds what closing c reports to err.
func closing(c interface{ Close() error }, err *error) {
	*err = errors.Join(*err, c.Close())
}
