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

	plan    *plan            // how the file's rows are read; nil before the first one
	answers map[string]cells // of the rows by id, from another file; nil if there is none
	dropped int              // rows that the filter drops
}

// errTooLarge is the error of a read beyond the limit.
var errTooLarge = errors.New("too large")

// bounded counts what is read, and fails beyond a limit.
type bounded struct {
	from io.Reader
	left *int64
}

// Read implements io.Reader.
func (b bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		return 0, errTooLarge
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
	if err == nil || errors.Is(err, io.EOF) {
		err = r.rows(ctx, in, head)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	var fault *Fault
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, foreign.ErrTooLarge):
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

// rows reads the rows in the form that the first bytes of the file show.
func (r *reader) rows(ctx context.Context, in *bufio.Reader, head []byte) error {
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

// table reads CSV, as RFC 4180 has it. The first line names the fields; rows are counted without it.
func (r *reader) table(ctx context.Context, in *csv.Reader) error {
	var names []string
	for number := 0; ctx.Err() == nil; number++ {
		row := Row{File: r.part.name, Number: number}
		values, err := in.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			return row.Fault("line %d is not CSV: %v", bad.Line, bad.Err)
		case err != nil:
			return r.unpacked(row, err)
		case number == 0:
			values[0] = strings.TrimPrefix(values[0], "\ufeff") // some programs mark UTF-8 so
			for i, name := range values {
				if slices.Contains(values[:i], name) && name != "" {
					return faultf(r.part.name, "its first line names the column %s twice", name)
				}
			}
			names = values
			continue
		}
		from, size := cells{}, 0
		for i, name := range names {
			if size += len(values[i]); size > r.source.row {
				return r.tooLong(row)
			}
			if name != "" {
				from[name] = values[i]
			}
		}
		if err := r.take(number, from, names); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// take reads one row of the file. columns are the file's, nil if each row has its own.
func (r *reader) take(number int, from cells, columns []string) (err error) {
	r.complete(from)
	if r.plan == nil {
		if r.plan, err = r.source.recognise(r.part.name, columns, from); err != nil {
			return err
		}
	}
	row := Row{File: r.part.name, Number: number, Values: map[string]string{}, Lists: map[string][]string{},
		Cells: from, Shape: r.plan.shape, Set: r.source.set}
	keep, err := r.plan.read(row, from)
	switch {
	case err != nil && r.source.look != nil:
		r.source.look(row, err)
		return nil
	case err != nil:
		return err
	case !keep:
		r.dropped++
		return nil
	}
	return r.each(row)
}

// unpacked says what is wrong if reading failed because a packed file is damaged.
func (r *reader) unpacked(row Row, err error) error {
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return row.Fault("the packed file is not whole: %v", err)
	}
	return err
}

// lines reads JSON Lines. Its buffer holds the longest row, and the line's end.
func (r *reader) lines(ctx context.Context, in io.Reader) error {
	from := bufio.NewReaderSize(in, r.source.row+len("\r\n"))
	for number := 1; ctx.Err() == nil; number++ {
		row := Row{File: r.part.name, Number: number}
		line, end := from.ReadSlice('\n')
		switch {
		case errors.Is(end, bufio.ErrBufferFull), len(bytes.TrimRight(line, "\r\n")) > r.source.row:
			return r.tooLong(row)
		case end != nil && !errors.Is(end, io.EOF):
			return r.unpacked(row, end)
		case len(bytes.TrimSpace(line)) > 0:
			if err := r.object(row, line); err != nil {
				return err
			}
		}
		if end != nil {
			break
		}
	}
	return ctx.Err()
}

// object takes a row that is a JSON object.
func (r *reader) object(row Row, text []byte) error {
	from, err := cellsOf(row, text)
	if err != nil {
		return err
	}
	return r.take(row.Number, from, nil)
}

// list reads a JSON list.
func (r *reader) list(ctx context.Context, in io.Reader) error {
	d := json.NewDecoder(in)
	_, err := d.Token()
	for number := 1; err == nil && ctx.Err() == nil; number++ {
		row := Row{File: r.part.name, Number: number}
		var text json.RawMessage
		if d.More() {
			err = d.Decode(&text)
		} else if _, err = d.Token(); err == nil { // the list's end
			return nil
		}
		var bad *json.SyntaxError
		switch {
		case errors.As(err, &bad), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			return row.Fault("the list is not JSON: %v", err)
		case err != nil:
			return r.unpacked(row, err)
		case len(text) > r.source.row:
			return r.tooLong(row)
		}
		if err := r.object(row, text); err != nil {
			return err
		}
	}
	return errors.Join(err, ctx.Err())
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
			first := cellsFrom(names, values)
			if r.plan, err = r.source.recognise(r.part.name, names, first); err != nil {
				return err
			}
			return errFirst
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
			if size > int64(r.source.row) {
				return r.tooLong(Row{File: r.part.name, Number: number})
			}
			return r.take(number, cellsFrom(names, values), names)
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
