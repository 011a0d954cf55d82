package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema/foreign"
)

// reader reads the rows of one file.
type reader struct {
	source source
	part   part
	left   *int64 // bytes that the source may still hold
	each   func(Row) error

	names   []string         // the file's columns; nil if each row has its own
	plan    *plan            // how the file's rows are read; nil before the first one
	answers map[string]cells // of the rows by id, from another file; nil if there is none
	rows    int              // that each or look is called for
	dropped int              // rows that the filter drops
}

// bounded counts what is read, and fails with foreign.ErrTooLarge beyond a limit.
type bounded struct {
	from io.Reader
	left *int64
}

// Read implements io.Reader.
func (b bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		return 0, foreign.ErrTooLarge
	}
	return n, err
}

// run reads the file and returns its digest.
func (r *reader) run(ctx context.Context) (digest string, err error) {
	file, err := r.part.open()
	if err != nil {
		return "", fmt.Errorf("open %s: %w", r.part.name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(bounded{file, r.left}, hash), 64<<10)
	head, err := in.Peek(8)
	if errors.Is(err, io.EOF) { // the file is shorter
		err = nil
	}
	if err == nil && !r.source.unread {
		err = r.read(ctx, in, head)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	var fault *Fault
	switch {
	case errors.Is(err, foreign.ErrTooLarge):
		return "", r.source.tooLarge(r.part.name)
	case err != nil && !errors.As(err, &fault):
		return "", fmt.Errorf("read %s: %w", r.part.name, err)
	}
	digest = hex.EncodeToString(hash.Sum(nil))
	if wanted := r.part.sha256; err == nil && wanted != "" && wanted != digest {
		return "", faultf(r.part.name, "has the digest %s, and the hub says %s", digest, wanted)
	}
	return digest, err
}

// read reads the rows in the form that the first bytes of the file show.
func (r *reader) read(ctx context.Context, in *bufio.Reader, head []byte) error {
	switch {
	case foreign.Is(head):
		return r.columns(in)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return faultf(r.part.name, "is not whole: %v", err)
		}
		left := r.source.bytes
		return r.text(ctx, bufio.NewReaderSize(bounded{unpacked, &left}, 64<<10))
	}
	if fault := badinput.Compressed(head); fault != "" {
		return faultf(r.part.name, "%s", fault)
	}
	return r.text(ctx, in)
}

// text reads rows of text: a JSON list, CSV if the file's name says so, otherwise JSON Lines.
func (r *reader) text(ctx context.Context, in *bufio.Reader) error {
	if head, _ := in.Peek(64); bytes.HasPrefix(bytes.TrimSpace(head), []byte("[")) {
		return r.list(ctx, in)
	}
	name, _, _ := strings.Cut(r.part.name, "?")
	if strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".csv") {
		return r.table(ctx, csv.NewReader(in))
	}
	return r.lines(ctx, in)
}

// takeAll takes the rows that next returns, numbered from first, until io.EOF. A row without cells is none.
func (r *reader) takeAll(ctx context.Context, first int, next func(row Row) (cells, error)) error {
	for number := first; ctx.Err() == nil; number++ {
		row := Row{File: r.part.name, Number: number}
		from, err := next(row)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
			return row.Fault("the packed file is not whole: %v", err)
		case err != nil:
			return err
		case from != nil:
			if err := r.take(row, from); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// take takes one row of the file.
func (r *reader) take(row Row, from cells) (err error) {
	r.complete(from)
	if r.plan == nil {
		if r.plan, err = r.source.recognise(r.part.name, r.names, from); err != nil {
			return err
		}
	}
	row.Values, row.Lists, row.Cells = map[string]string{}, map[string][]string{}, from
	row.Shape, row.Set = r.plan.shape, r.source.set
	keep, err := r.plan.read(row, from)
	switch {
	case err != nil && r.source.look != nil:
		r.rows++
		r.source.look(row, err)
		return nil
	case err != nil:
		return err
	case !keep:
		r.dropped++
		return nil
	}
	r.rows++
	return r.each(row)
}

// table reads CSV, as RFC 4180 has it. The first line names the columns; rows are counted without it.
func (r *reader) table(ctx context.Context, in *csv.Reader) error {
	return r.takeAll(ctx, 0, func(row Row) (cells, error) {
		values, err := in.Read()
		var bad *csv.ParseError
		switch {
		case errors.As(err, &bad):
			return nil, row.Fault("line %d is not CSV: %v", bad.Line, bad.Err)
		case err != nil:
			return nil, err
		case r.names == nil:
			values[0] = strings.TrimPrefix(values[0], "\ufeff") // some programs mark UTF-8 so
			for i, name := range values {
				if slices.Contains(values[:i], name) && name != "" {
					return nil, row.Fault("its first line names the column %s twice", name)
				}
			}
			r.names = values
			return nil, nil
		}
		from, size := cells{}, 0
		for i, name := range r.names {
			if size += len(values[i]); size > r.source.row {
				return nil, r.tooLong(row)
			}
			if name != "" {
				from[name] = values[i]
			}
		}
		return from, nil
	})
}

// lines reads JSON Lines. Its buffer holds the longest row, and the line's end.
func (r *reader) lines(ctx context.Context, in io.Reader) error {
	from := bufio.NewReaderSize(in, r.source.row+len("\r\n"))
	return r.takeAll(ctx, 1, func(row Row) (cells, error) {
		line, err := from.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull), len(bytes.TrimRight(line, "\r\n")) > r.source.row:
			return nil, r.tooLong(row)
		case err != nil && !errors.Is(err, io.EOF), len(bytes.TrimSpace(line)) == 0:
			return nil, err
		}
		return cellsOf(row, line)
	})
}

// list reads a JSON list.
func (r *reader) list(ctx context.Context, in io.Reader) error {
	d := json.NewDecoder(in)
	if _, err := d.Token(); err != nil {
		return err
	}
	return r.takeAll(ctx, 1, func(row Row) (cells, error) {
		var text json.RawMessage
		var bad *json.SyntaxError
		var err error
		if d.More() {
			err = d.Decode(&text)
		} else if _, err = d.Token(); err == nil { // the list's end
			return nil, io.EOF
		}
		switch {
		case errors.As(err, &bad), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			return nil, row.Fault("the list is not JSON: %v", err)
		case err != nil:
			return nil, err
		case len(text) > r.source.row:
			return nil, r.tooLong(row)
		}
		return cellsOf(row, text)
	})
}

func (r *reader) tooLong(row Row) error {
	return row.Fault("the row has more than %d KiB; a recipe that accepts longer rows says so by max_row_kb",
		r.source.row>>10)
}

// errFirst ends a reading after the first row.
var errFirst = errors.New("the first row")

// columns reads a file of columns: Parquet or Arrow. Its first row says which columns are read of the others.
func (r *reader) columns(in io.Reader) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	number := 0
	err = rescue.Do(func() error { // the decoders may panic on damaged files
		table, err := foreign.Open(data, r.source.bytes)
		if err != nil {
			return err
		}
		names := table.Columns()
		err = table.Rows(names, func(values []any) (err error) {
			if r.plan, err = r.source.recognise(r.part.name, names, cellsFrom(names, values)); err == nil {
				err = errFirst
			}
			return err
		})
		if !errors.Is(err, errFirst) {
			return err
		}
		if r.source.look == nil {
			names = slices.DeleteFunc(names, func(name string) bool { return !r.plan.reads(name) })
		}
		return table.Rows(names, func(values []any) error {
			number++
			size := int64(0)
			for _, v := range values {
				size += foreign.Size(v)
			}
			row := Row{File: r.part.name, Number: number}
			if size > int64(r.source.row) {
				return r.tooLong(row)
			}
			return r.take(row, cellsFrom(names, values))
		})
	})
	var fault *Fault
	if err == nil || errors.As(err, &fault) || errors.Is(err, foreign.ErrTooLarge) {
		return err
	}
	return faultf(r.part.name, "after row %d: %v", number, err)
}

// cellsFrom are the values of a row, without nulls.
func cellsFrom(names []string, values []any) cells {
	out := cells{}
	for i, name := range names {
		switch v := values[i].(type) {
		case nil:
		case json.RawMessage:
			out[name] = cellOf(string(v))
		default:
			out[name] = v
		}
	}
	return out
}
