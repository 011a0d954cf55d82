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
	"github.com/ropewalk/ropewalk/schema"
)

// Session is a database with the tables that its queries mention, for asking several queries of
// one state of the record. It is not safe for concurrent use; the caller closes it.
type Session struct {
	record *analysis.Record
	files  *analysis.Cache
	db     *sql.DB
	conn   *sql.Conn

	temporary string // folder of the files of a session whose reader keeps none
}

// Open fetches what the queries read of runs and loads it: each table that follows a FROM or JOIN in one of them,
// with the columns whose names appear anywhere in the queries that read it.
func Open(ctx context.Context, record *analysis.Record, runs []string, queries ...string) (s *Session, err error) {
	reads := map[schema.Table][]string{}
	for _, q := range queries {
		q = strings.ToLower(q)
		for _, t := range read(q) {
			reads[t] = append(reads[t], words.FindAllString(q, -1)...)
		}
	}
	if s, err = start(ctx, record); err != nil {
		return nil, err
	}
	if err := s.load(ctx, slices.Sorted(maps.Keys(reads)), reads, "", runs); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start opens an empty database.
func start(ctx context.Context, record *analysis.Record) (s *Session, err error) {
	s = &Session{record: record, files: record.Cache()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.files == nil { // its own, so that reading leaves nothing behind
		if s.temporary, err = os.MkdirTemp("", "ropewalk-sql-"); err != nil {
			return s, fmt.Errorf("make a folder for fetched files: %w", err)
		}
		if s.files, err = analysis.OpenCache(s.temporary); err != nil {
			return s, err
		}
	}
	if s.db, err = open(); err != nil {
		return s, err
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return s, fmt.Errorf("start DuckDB: %w", err)
	}
	return s, nil
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
