package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/cache"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Session is a database with the tables that its queries mention, for asking several queries of
// one state of the record. It is not safe for concurrent use; the caller closes it.
type Session struct {
	db   *sql.DB
	conn *sql.Conn
}

// Open fetches what the queries read and loads it: each table that follows a FROM or JOIN in one of them,
// with the columns whose names stand anywhere in the queries that read it. Options.Query is not read.
func Open(ctx context.Context, o Options, queries ...string) (*Session, error) {
	reads := map[schema.Table][]string{}
	for _, q := range queries {
		q = strings.ToLower(q)
		for _, t := range read(q) {
			reads[t] = append(reads[t], words.FindAllString(q, -1)...)
		}
	}
	return start(ctx, o, slices.Sorted(maps.Keys(reads)), reads)
}

// start makes tables: views, or with columns copies of those alone.
func start(ctx context.Context, o Options, tables []schema.Table, columns map[schema.Table][]string) (s *Session, err error) {
	files, err := cache.Open(o.Cache)
	if err != nil {
		return nil, err
	}
	s = &Session{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if s.db, err = open(); err != nil {
		return s, err
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return s, fmt.Errorf("start DuckDB: %w", err)
	}
	// Columns are united by name before the rows are read: this way each footer is parsed once.
	if _, err := s.conn.ExecContext(ctx, "SET parquet_metadata_cache = true"); err != nil {
		return s, fmt.Errorf("start DuckDB: %w", err)
	}
	record := analysis.New(o.Store).WithCache(files).WithGeneration(o.Gen)
	if err := createTables(ctx, s.conn, record, files, o, tables, columns); err != nil {
		return s, err
	}
	dirs := []string{files.Dir()}
	if local, ok := o.Store.(store.Files); ok {
		dirs = append(dirs, local.Root())
	}
	return s, lockDown(ctx, s.conn, dirs)
}

// Ask answers one reading statement.
func (s *Session) Ask(ctx context.Context, query string) (Result, error) {
	return ask(ctx, s.conn, query)
}

// Close lets the database go.
func (s *Session) Close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}
