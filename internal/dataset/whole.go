package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
)

// ReadWhole reads one file into memory: at most most bytes, which must have the SHA-256 digest.
func ReadWhole(ctx context.Context, address, digest string, most int64, fetch Fetch) ([]byte, error) {
	s := source{split: train, address: address, bytes: most, fetch: fetch}
	parts, folder, err := s.parts(ctx)
	if err != nil {
		return nil, err
	}
	if folder {
		return nil, faultf(address, Unreadable, "is a folder")
	}
	from, err := parts[0].open()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, faultf(address, Unreadable, "%v", err)
	}
	if err := s.fits(address, int64(len(data))); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != digest {
		return nil, faultf(address, OtherBytes, "has the digest %s, and the recipe wants %s", got, digest)
	}
	return data, nil
}

// The most bytes of a source whose rows Objects reads, and of a row.
const (
	mostObjects = 4 << 30
	mostObject  = 64 << 20
)

// Objects reads the rows of a source with all of their columns, as JSON lines.
func Objects(ctx context.Context, address string, fetch Fetch) ([]byte, error) {
	s := source{split: train, address: address, bytes: mostObjects, row: mostObject, fetch: fetch}
	s.look = func(Row, error) {} // no field is required, so that no row is refused
	var out bytes.Buffer
	_, err := s.read(ctx, Format{}, func(r Row) error {
		for name, value := range r.Cells {
			if err, bad := value.(error); bad {
				return r.Fault(BadField, "%s %v", name, err)
			}
		}
		line, err := json.Marshal(r.Cells)
		out.Write(append(line, '\n'))
		return err
	})
	return out.Bytes(), err
}
