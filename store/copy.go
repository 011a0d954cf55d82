package store

import (
	"context"
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// Copy reads an object in ranges of copyRange bytes and requests copyAhead ranges ahead of the one that it writes. A
// range that fails is repeated by itself, so that a download of hours need not start from the beginning.
const (
	copyRange = 8 << 20
	copyAhead = 3
)

// Copy writes an object that should have size bytes to w, in order, and holds only a few ranges of it in memory. It
// returns how many bytes it wrote: fewer than size if the object is shorter, and size+1 if it is longer. The caller
// checks the digest of the bytes.
func Copy(ctx context.Context, s Store, key string, size int64, w io.Writer) (written int64, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends the outstanding requests if we return early
	defer cancel()
	ranges := fetchAhead(ctx, s, key, size+1) // one byte more, to notice an object that is longer
	for want := range ranges {
		got := <-want
		if got.err != nil {
			return written, got.err
		}
		n, err := w.Write(got.data)
		written += int64(n)
		if err != nil {
			return written, fmt.Errorf("copy %s: %w", key, err)
		}
		if int64(len(got.data)) < got.length {
			return written, nil // the object ends here
		}
	}
	return written, ctx.Err()
}

type fetched struct {
	data   []byte
	length int64 // that was requested
	err    error
}

// fetchAhead requests all ranges of an object, a few at a time, and delivers the results in order.
func fetchAhead(ctx context.Context, s Store, key string, size int64) <-chan chan fetched {
	ranges := make(chan chan fetched, copyAhead)
	go func() {
		defer close(ranges)
		for offset := int64(0); offset < size; offset += copyRange {
			result := make(chan fetched, 1)
			select {
			case ranges <- result:
			case <-ctx.Done():
				return
			}
			length := min(copyRange, size-offset)
			go func() {
				var data []byte
				err := rescue.Do(func() (err error) {
					data, err = s.GetRange(ctx, key, offset, length)
					return err
				})
				result <- fetched{data, length, err}
			}()
		}
	}()
	return ranges
}
