package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Fetch opens the file at a remote address for reading. The caller closes it. An address that ends in a slash is a
// folder: what is read are the names of its files, also of folders below, one on each line.
type Fetch func(ctx context.Context, address string) (io.ReadCloser, error)

// schemes are the beginnings of remote addresses.
var schemes = []string{"s3://", "https://", "http://", hubScheme}

// Remote reports whether an address is that of a remote file rather than a local path.
func Remote(address string) bool {
	return slices.ContainsFunc(schemes, func(s string) bool { return strings.HasPrefix(address, s) })
}

// source is where rows come from.
type source struct {
	split   string // train or held_out
	set     string // of several evaluation sets; "" = there is one
	address string
	digest  string // that the recipe gives; "" accepts any
	plans   []plan // the ways in which the rows may be read
	// answered means that a file may have its answers in another one (see answersOf).
	answered bool
	unread   bool             // no rows are read, the bytes alone
	look     func(Row, error) // takes bad rows, and has all columns read; nil: a bad row ends the reading
	bytes    int64            // most bytes of all files, packed and unpacked
	row      int              // most bytes of a row
	fetch    Fetch
}

// part is one file of a source.
type part struct {
	name string // in messages
	base string // path in the folder, in the digest; "" = the source is this file, and has its digest
	open func() (io.ReadCloser, error)
	// sha256 is the digest that the server gives; "" if it gives none.
	sha256 string
}

// parts lists the files of a source, sorted by name. There is at least one.
func (s source) parts(ctx context.Context) ([]part, error) {
	switch {
	case onHub(s.address):
		return s.hub(ctx)
	case Remote(s.address) && s.fetch == nil:
		return nil, fmt.Errorf("%s: this program opens no remote addresses", s.address)
	case Remote(s.address) && strings.HasSuffix(s.address, "/"):
		return s.remoteFolder(ctx)
	case Remote(s.address):
		return []part{{name: s.address, open: func() (io.ReadCloser, error) { return s.fetch(ctx, s.address) }}}, nil
	case !filepath.IsAbs(s.address):
		return nil, fmt.Errorf("must be an absolute path, because workers read it too, or an address that "+
			"begins with s3://, https:// or %s, got %s", hubScheme, s.address)
	}
	at, err := os.Stat(s.address)
	switch {
	case err != nil:
		return nil, err
	case at.IsDir():
		return s.folder()
	case !at.Mode().IsRegular():
		return nil, fmt.Errorf("%s is neither a file nor a folder", s.address)
	case at.Size() > s.bytes:
		return nil, s.tooLarge(s.address)
	}
	return s.withAnswers(), nil
}

func local(path, base string) part {
	return part{name: path, base: base, open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

func (s source) tooLarge(file string) error {
	return faultf(file, "holds more than %d MiB; a recipe that accepts more says so by max_mb, and its "+
		"rows are held in memory", s.bytes>>20)
}

// Digest reads what is at a remote address and returns the digest by which a recipe names its bytes, as training or as
// held-out tasks. It is "" for a local file, which a recipe's digest is taken of anyway, and for a set on a hub, whose
// revision names it.
func Digest(ctx context.Context, address string, held bool, fetch Fetch) (string, error) {
	if !Remote(address) || onHub(address) {
		return "", nil
	}
	s := source{split: train, address: address, answered: true, unread: true, bytes: math.MaxInt64, fetch: fetch}
	if held {
		s.split = heldOut
	}
	return s.read(ctx, nil)
}

// copy writes the file, whose bytes most bounds, and returns its digest.
func (p part) copy(to io.Writer, most int64) (digest string, err error) {
	file, err := p.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), bounded{file, &most})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// read calls each for every row, and returns the source's digest. A source whose digest is not the recipe's is a fault,
// which read reports only after it has read everything.
func (s source) read(ctx context.Context, each func(Row) error) (digest string, err error) {
	parts, err := s.parts(ctx)
	if err != nil {
		return "", err
	}
	folder := parts[0].base != ""
	all, rows, dropped, left := sha256.New(), 0, 0, s.bytes
	parts, answers := s.pair(parts)
	for _, p := range parts {
		r := reader{source: s, part: p, left: &left, each: each}
		if of, there := answers[p.base]; there {
			if r.answers, digest, err = s.readAnswers(ctx, of, &left); err != nil {
				return "", err
			}
			fmt.Fprintf(all, "%s %s\n", of.base, digest)
		}
		if digest, err = r.run(ctx); err != nil {
			return "", err
		}
		fmt.Fprintf(all, "%s %s\n", p.base, digest)
		rows, dropped = rows+r.rows, dropped+r.dropped
	}
	if folder {
		digest = hex.EncodeToString(all.Sum(nil))
	}
	if s.digest != "" && s.digest != digest {
		return "", faultf(s.address, "has the digest %s, and the recipe wants %s", digest, s.digest)
	}
	switch {
	case s.unread:
		return digest, nil
	case rows == 0 && dropped > 0:
		return "", faultf(s.address, "the filter drops all of its %d rows", dropped)
	case rows == 0:
		return "", faultf(s.address, "holds no rows")
	}
	return digest, nil
}
