package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/compressed"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema/foreign"
)

// reader reads the rows of one file.
type reader struct {
	source source
	format Format
	part   part
	left   int64 // bytes that the source may still hold
	each   func(Row) error
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

// run reads the file and returns the SHA-256 of its bytes.
func (r *reader) run(ctx context.Context) (sum []byte, err error) {
	file, err := r.part.open()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", r.part.name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(bounded{file, &r.left}, hash), 64<<10)
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
		return nil, r.source.tooLarge(r.part.name)
	case err != nil && !errors.As(err, &fault):
		return nil, fmt.Errorf("read %s: %w", r.part.name, err)
	}
	return hash.Sum(nil), err
}

// rows reads the rows in the form that the first bytes of the file show.
func (r *reader) rows(ctx context.Context, in *bufio.Reader, head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte(foreign.Magic)):
		return r.parquet(in)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return faultf(r.part.name, Unreadable, "is not whole: %v", err)
		}
		left := r.source.bytes
		return r.text(ctx, bufio.NewReaderSize(bounded{unpacked, &left}, 64<<10))
	}
	if fault := compressed.Fault(head); fault != "" {
		return faultf(r.part.name, Unreadable, "%s", fault)
	}
	return r.text(ctx, in)
}

// text reads rows of text: CSV if the file's name says so, otherwise JSON Lines.
func (r *reader) text(ctx context.Context, in *bufio.Reader) error {
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
		row := Row{File: r.part.name, Number: number, Values: map[string]string{}}
		values, err := in.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			return row.Fault(Unreadable, "line %d is not CSV: %v", bad.Line, bad.Err)
		case err != nil:
			return r.unpacked(row, err)
		case number == 0:
			values[0] = strings.TrimPrefix(values[0], "\ufeff") // some programs mark UTF-8 so
			if names, err = r.header(values); err != nil {
				return err
			}
			continue
		}
		size := 0
		for i, name := range names {
			if size += len(values[i]); size > r.source.row {
				return r.tooLong(row)
			}
			if name == "" {
				continue
			}
			if err := row.set(name, values[i]); err != nil {
				return err
			}
		}
		if err := r.format.check(row); err != nil {
			return err
		}
		if err := r.each(row); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// header returns the name of each column of CSV, "" for one that is not read.
func (r *reader) header(names []string) ([]string, error) {
	for _, name := range r.format.Required {
		if !slices.Contains(names, name) {
			return nil, faultf(r.part.name, Missing, "its first line names no column %s", name)
		}
	}
	out := slices.Clone(names)
	for i, name := range out {
		if slices.Contains(out[:i], name) {
			return nil, faultf(r.part.name, Unreadable, "its first line names the column %s twice", name)
		}
		if !slices.Contains(r.format.names(), name) {
			out[i] = ""
		}
	}
	return out, nil
}

// unpacked says what is wrong if reading failed because a packed file is damaged.
func (r *reader) unpacked(row Row, err error) error {
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return row.Fault(Unreadable, "the packed file is not whole: %v", err)
	}
	return err
}

// lines reads JSON Lines.
func (r *reader) lines(ctx context.Context, in *bufio.Reader) error {
	for number := 1; ; number++ {
		row := Row{File: r.part.name, Number: number, Values: map[string]string{}}
		line, err := r.line(row, in)
		if err != nil && !errors.Is(err, io.EOF) {
			return r.unpacked(row, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := r.format.parse(row, line); err != nil {
				return err
			}
			if err := r.each(row); err != nil {
				return err
			}
		}
		if err != nil {
			return ctx.Err()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// line reads one line without holding more than the longest row. The error at the end of the file is io.EOF, with the
// last line.
func (r *reader) line(row Row, in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		if len(line)+len(bytes.TrimRight(piece, "\r\n")) > r.source.row {
			return nil, r.tooLong(row)
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (r *reader) tooLong(row Row) error {
	return row.Fault(TooLong, "the row has more than %d KiB; a recipe that accepts longer rows says so by max_row_kb",
		r.source.row>>10)
}

// parquet reads a Parquet file.
func (r *reader) parquet(in io.Reader) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	number := 0
	err = rescue.Do(func() error { // the decoder may panic on damaged pages
		table, err := foreign.Open(bytes.NewReader(data), int64(len(data)), r.source.bytes, r.format.names())
		if err != nil {
			return err
		}
		names := table.Columns()
		return table.Rows(func(texts []string, ok []bool) error {
			number++
			row, size := Row{File: r.part.name, Number: number, Values: map[string]string{}}, 0
			for i, name := range names {
				if size += len(texts[i]); size > r.source.row {
					return r.tooLong(row)
				}
				if ok[i] {
					if err := row.set(name, strings.Clone(texts[i])); err != nil {
						return err
					}
				}
			}
			if err := r.format.check(row); err != nil {
				return err
			}
			return r.each(row)
		})
	})
	var fault *Fault
	if err == nil || errors.As(err, &fault) || errors.Is(err, foreign.ErrTooLarge) {
		return err
	}
	return faultf(r.part.name, Unreadable, "after row %d: %v", number, err)
}
