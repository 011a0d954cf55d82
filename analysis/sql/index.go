package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Index is a table in memory that its owner fills, some rows at a time, and that readers ask. Readers see whole
// additions only, and reach nothing but the table. It is safe for concurrent use; the caller closes it.
type Index struct {
	name   string
	db     *sql.DB
	adding sync.Mutex
	writer *sql.Conn
}

// IndexColumn is a column of an index; its type is one of DuckDB's.
type IndexColumn struct{ Name, Type string }

// OpenIndex makes the empty table of this name.
func OpenIndex(ctx context.Context, name string, columns []IndexColumn) (x *Index, err error) {
	x = &Index{name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
			x = nil
		}
	}()
	if x.db, err = open(); err != nil {
		return x, err
	}
	if x.writer, err = x.db.Conn(ctx); err != nil {
		return x, fmt.Errorf("start DuckDB: %w", err)
	}
	var declared []string
	for _, c := range columns {
		declared = append(declared, fmt.Sprintf("%q %s", c.Name, c.Type))
	}
	if _, err := x.writer.ExecContext(ctx, "CREATE TABLE "+name+" ("+strings.Join(declared, ", ")+")"); err != nil {
		return x, fmt.Errorf("create table %s: %w", name, err)
	}
	return x, lockDown(ctx, x.writer, nil)
}

// Add adds rows. It calls fill, which puts one row after the other; their values are in the order of the columns, and
// are not used any more when put returns. If fill or Add fails, none of these rows are added.
func (x *Index) Add(ctx context.Context, fill func(put func(row []driver.Value) error) error) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	if _, err := x.writer.ExecContext(ctx, "BEGIN TRANSACTION"); err != nil {
		return fmt.Errorf("begin to fill table %s: %w", x.name, err)
	}
	if err := appendRows(x.writer, x.name, fill); err != nil {
		_, back := x.writer.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, back)
	}
	if _, err := x.writer.ExecContext(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		return fmt.Errorf("fill table %s: %w", x.name, err)
	}
	return nil
}

// Ask answers one reading statement; args are its parameters, one for each question mark. The statement runs in a
// transaction that can only read.
func (x *Index) Ask(ctx context.Context, query string, args ...any) (out Result, err error) {
	conn, err := x.db.Conn(ctx)
	if err != nil {
		return Result{}, mendable(ctx, err)
	}
	defer closing(conn, &err)
	if _, err := conn.ExecContext(ctx, "BEGIN TRANSACTION READ ONLY"); err != nil {
		return Result{}, mendable(ctx, err)
	}
	defer func() {
		_, end := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = errors.Join(err, end)
	}()
	if out, err = ask(ctx, conn, query, args...); err != nil && strings.Contains(err.Error(), thereIsNoTable) {
		return out, fmt.Errorf("%w: the tables of the record cannot be read here, only the columns of %s", ErrQuery,
			x.name)
	}
	return out, err
}

// Close closes the database.
func (x *Index) Close() error {
	var err error
	if x.writer != nil {
		err = x.writer.Close()
	}
	if x.db != nil {
		err = errors.Join(err, x.db.Close())
	}
	return err
}
