package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/internal/seed"
)

// Tasks are the rows of a source as tasks, in the order of the files.
type Tasks[T any] struct {
	Train, HeldOut []T
}

// Load reads the files that the settings name. convert makes a row a task; its error is the fault of the row.
func Load[T any](ctx context.Context, f Fields, format Format, fetch Fetch, convert func(Row) (T, error)) (Tasks[T],
	error) {
	l := loader[T]{fields: f, format: format, convert: convert, keys: map[digest]place{}}
	all, err := f.sources(format, fetch)
	for _, s := range all {
		if err == nil && s.address != "" {
			_, err = l.read(ctx, s)
		}
	}
	return l.tasks, err
}

// LoadSet reads a local file or folder of an evaluation set within the limits of f. A row may be there more than once.
// The digest is that of the source.
func LoadSet[T any](ctx context.Context, f Fields, path string, format Format,
	convert func(Row) (T, error)) (set []T, digest string, err error) {
	if Remote(path) {
		return nil, "", fmt.Errorf("%s: must be an absolute path", path)
	}
	s, err := f.source(format, nil)
	if err != nil {
		return nil, "", err
	}
	s.split, s.address = heldOut, path
	digest, err = s.read(ctx, func(r Row) error {
		task, err := convert(r)
		set = append(set, task)
		return err
	})
	return set, digest, err
}

// loader reads the held-out files before the training file, so that a task of both is held out.
type loader[T any] struct {
	fields  Fields
	format  Format
	convert func(Row) (T, error)

	tasks Tasks[T]
	keys  map[digest]place
	ids   map[digest]place // of the source that is being read
}

// digest is the beginning of a SHA-256: sixteen bytes tell any two rows apart.
type digest [16]byte

// place says where a row is.
type place struct {
	file string
	row  int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.row) }

// sum is the digest of texts.
func sum(texts ...string) digest {
	h := sha256.New()
	for _, t := range texts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(t))))
		h.Write([]byte(t))
	}
	return digest(h.Sum(nil))
}

// read reads one source.
func (l *loader[T]) read(ctx context.Context, s source) (string, error) {
	l.ids = map[digest]place{}
	sha, err := s.read(ctx, func(r Row) error { return l.add(s.split == heldOut, r) })
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.split, err)
	}
	return sha, nil
}

// add takes one row.
func (l *loader[T]) add(held bool, r Row) error {
	key, here := l.key(r), place{r.File, r.Number}
	earlier, known := l.keys[key]
	if known && l.fields.Duplicates != "first" {
		return r.Fault("the same task is in %s; duplicates: first keeps that row alone", earlier)
	}
	if id := r.Values[l.format.ID]; l.format.ID != "" && id != "" {
		before, taken := l.ids[sum(id)]
		if taken && !known {
			return r.Fault("%s %.80q is that of another task in %s", l.format.ID, id, before)
		}
		l.ids[sum(id)] = here
	}
	if known {
		return nil
	}
	l.keys[key] = here
	task, err := l.convert(r)
	if err != nil {
		return err
	}
	if held || l.fields.HeldOut == "" && l.drawn(key) {
		l.tasks.HeldOut = append(l.tasks.HeldOut, task)
	} else {
		l.tasks.Train = append(l.tasks.Train, task)
	}
	return nil
}

func (l *loader[T]) key(r Row) digest {
	var texts []string
	for _, name := range l.format.Key {
		texts = append(texts, r.Values[name])
	}
	return sum(texts...)
}

// drawn reports whether a task belongs to the held-out share.
func (l *loader[T]) drawn(key digest) bool {
	u := seed.Derive("held-out share", uint64(l.fields.SplitSeed), binary.LittleEndian.Uint64(key[:]))
	return float64(u)/math.MaxUint64 < l.fields.Share
}

// Look reads a source as Load does, and calls each with every row, also with those that Load would refuse; their fault
// is not nil. It returns the source's digest.
func Look[T any](ctx context.Context, f Fields, address string, format Format, fetch Fetch,
	convert func(Row) (T, error), each func(row Row, task T, fault error)) (digest string, err error) {
	s, err := f.source(format, fetch)
	if err != nil {
		return "", err
	}
	s.address = address
	var none T
	s.look = func(row Row, fault error) { each(row, none, fault) }
	return s.read(ctx, func(row Row) error {
		task, fault := convert(row)
		each(row, task, fault)
		return nil
	})
}

// Lenient are the settings by which files are looked at that no recipe names.
func Lenient() map[string]any {
	return map[string]any{"duplicates": "first", "max_mb": 1 << 20, "max_row_kb": 1 << 16}
}
