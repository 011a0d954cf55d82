package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/schema/foreign"
)

// ReadWhole reads one file into memory: at most most bytes, which must have the SHA-256 digest.
func ReadWhole(ctx context.Context, address, digest string, most int64, fetch Fetch) ([]byte, error) {
	s := source{split: train, address: address, bytes: most, fetch: fetch}
	parts, err := s.parts(ctx)
	if err != nil {
		return nil, err
	}
	if parts[0].base != "" {
		return nil, faultf(address, "is a folder")
	}
	var data bytes.Buffer
	got, err := parts[0].copy(&data, most)
	switch {
	case errors.Is(err, foreign.ErrTooLarge):
		return nil, s.tooLarge(address)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", address, err)
	case got != digest:
		return nil, faultf(address, "has the digest %s, and the recipe wants %s", got, digest)
	}
	return data.Bytes(), nil
}

// The most bytes of a source whose rows Objects reads, and of a row.
const (
	mostObjects = 4 << 30
	mostObject  = 64 << 20
)

// Objects reads the rows of a source with all of their columns, as JSON lines.
func Objects(ctx context.Context, address string, fetch Fetch) ([]byte, error) {
	s := source{split: train, address: address, plans: []plan{{}}, bytes: mostObjects, row: mostObject, fetch: fetch}
	s.look = func(Row, error) {} // no field is required, so that no row is refused
	var out bytes.Buffer
	_, err := s.read(ctx, func(r Row) error {
		for name, value := range r.Cells {
			if err, bad := value.(error); bad {
				return r.Fault("%s %v", name, err)
			}
		}
		line, err := json.Marshal(r.Cells)
		out.Write(append(line, '\n'))
		return err
	})
	return out.Bytes(), err
}
