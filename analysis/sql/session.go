package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
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

	temporary string // folder of the empty files of a session that keeps no cache
}

// Open fetches what the queries read and loads it: each table that follows a FROM or JOIN in one of them,
// with the columns whose names appear anywhere in the queries that read it. Options.Query is ignored.
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

// start makes the tables: views, or copies of the given columns.
func start(ctx context.Context, o Options, tables []schema.Table, columns map[schema.Table][]string) (s *Session,
	err error) {
	s = &Session{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	files, err := s.openCache(o)
	if err != nil {
		return s, err
	}
	if s.db, err = open(); err != nil {
		return s, err
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return s, fmt.Errorf("start DuckDB: %w", err)
	}
	// Columns are united by name before the rows are read: this way each footer of a view is parsed once. A table is
	// filled from each file once, and footers that were kept would be most of a long run's memory.
	if columns == nil {
		if _, err := s.conn.ExecContext(ctx, "SET parquet_metadata_cache = true"); err != nil {
			return s, fmt.Errorf("start DuckDB: %w", err)
		}
	}
	record := analysis.New(o.Store).WithCache(files).WithGeneration(o.Gen).WithGaps(o.Gap).WithServer(o.Server)
	if err := createTables(ctx, s.conn, record, files, o, tables, columns); err != nil {
		return s, err
	}
	dirs := []string{files.Dir()}
	if local, ok := o.Store.(store.Files); ok {
		dirs = append(dirs, local.Root())
	}
	return s, lockDown(ctx, s.conn, dirs)
}

// openCache opens the folder of fetched shards. A store whose objects are local files needs none, but for the empty
// files of tables without rows; they go to a folder of the session, so that reading leaves nothing behind.
func (s *Session) openCache(o Options) (*cache.Cache, error) {
	folder := o.Cache
	if _, local := o.Store.(store.Files); local {
		made, err := os.MkdirTemp("", "ropewalk-sql-")
		if err != nil {
			return nil, fmt.Errorf("make a folder for empty tables: %w", err)
		}
		s.temporary, folder = made, made
	}
	return cache.Open(folder)
}

// Ask answers one reading statement.
func (s *Session) Ask(ctx context.Context, query string) (Result, error) {
	return ask(ctx, s.conn, query)
}

// Close closes the database.
func (s *Session) Close() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	if s.temporary != "" {
		err = errors.Join(err, os.RemoveAll(s.temporary))
	}
	return err
}
