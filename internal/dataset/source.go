package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Fetch opens the file at a remote address for reading. The caller closes it.
type Fetch func(ctx context.Context, address string) (io.ReadCloser, error)

// schemes are the beginnings of remote addresses.
var schemes = []string{"s3://", "https://", "http://"}

// Remote reports whether an address is that of a remote file rather than a local path.
func Remote(address string) bool {
	return slices.ContainsFunc(schemes, func(s string) bool { return strings.HasPrefix(address, s) })
}

// suffixes end the names of the files of a folder that are read.
var suffixes = []string{".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet"}

// source is where rows come from.
type source struct {
	address string
	digest  string // that the recipe gives; "" accepts any
	bytes   int64  // most bytes of all files, packed and unpacked
	row     int    // most bytes of a row
	fetch   Fetch
}

// part is one file of a source.
type part struct {
	name string // in messages
	base string // in the digest
	open func() (io.ReadCloser, error)
}

// parts lists the files of a source, sorted by name.
func (s source) parts(ctx context.Context) (parts []part, folder bool, err error) {
	if Remote(s.address) {
		if s.fetch == nil {
			return nil, false, fmt.Errorf("%s: this program opens no remote addresses", s.address)
		}
		return []part{{name: s.address, open: func() (io.ReadCloser, error) { return s.fetch(ctx, s.address) }}}, false,
			nil
	}
	if !filepath.IsAbs(s.address) {
		return nil, false, fmt.Errorf("must be an absolute path, because workers read it too, or an address that "+
			"begins with %s, got %s", strings.Join(schemes[:2], " or "), s.address)
	}
	at, err := os.Stat(s.address)
	switch {
	case err != nil:
		return nil, false, err
	case at.IsDir():
		parts, err = s.folder()
		return parts, true, err
	case !at.Mode().IsRegular():
		return nil, false, fmt.Errorf("%s is neither a file nor a folder", s.address)
	}
	return []part{local(s.address)}, false, s.fits(s.address, at.Size())
}

func local(path string) part {
	return part{name: path, base: filepath.Base(path), open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// folder lists the files of a local folder. Folders below it, hidden files and files of other kinds are not read.
func (s source) folder() (parts []part, err error) {
	entries, err := os.ReadDir(s.address)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, e := range entries {
		named := slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(e.Name(), suffix) })
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || !named {
			continue
		}
		path := filepath.Join(s.address, e.Name())
		at, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		total += at.Size()
		if err := s.fits(path, total); err != nil {
			return nil, err
		}
		parts = append(parts, local(path))
	}
	if len(parts) == 0 {
		return nil, faultf(s.address, Empty, "the folder holds no file *%s", strings.Join(suffixes, ", *"))
	}
	return parts, nil
}

// fits refuses more bytes than the recipe accepts.
func (s source) fits(file string, size int64) error {
	if size <= s.bytes {
		return nil
	}
	return s.tooLarge(file)
}

func (s source) tooLarge(file string) error {
	return faultf(file, TooLarge, "holds more than %d MiB; a recipe that accepts more says so by max_mb, and its "+
		"rows are held in memory", s.bytes>>20)
}

// read calls each for every row, and returns the source's digest. A source whose digest is not the recipe's is a fault,
// which read reports only after it has read everything.
func (s source) read(ctx context.Context, f Format, each func(Row) error) (digest string, err error) {
	parts, folder, err := s.parts(ctx)
	if err != nil {
		return "", err
	}
	all, rows, left := sha256.New(), 0, s.bytes
	for _, p := range parts {
		r := reader{source: s, format: f, part: p, left: left, each: func(row Row) error {
			rows++
			return each(row)
		}}
		sum, err := r.run(ctx)
		if err != nil {
			return "", err
		}
		left = r.left
		digest = hex.EncodeToString(sum)
		fmt.Fprintf(all, "%s %s\n", p.base, digest)
	}
	if folder {
		digest = hex.EncodeToString(all.Sum(nil))
	}
	if s.digest != "" && s.digest != digest {
		return "", faultf(s.address, OtherBytes, "has the digest %s, and the recipe wants %s", digest, s.digest)
	}
	if rows == 0 {
		return "", faultf(s.address, Empty, "holds no rows")
	}
	return digest, nil
}
