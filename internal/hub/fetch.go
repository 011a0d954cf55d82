package hub

import (
	"context"
	"crypto/sha1" // of git
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"
)

// tries is how often a file is asked for. A connection that breaks continues where it broke.
const tries = 5

// pause lies between two tries.
const pause = time.Second

// Fetch writes a file of a snapshot to a path, and compares its bytes with the digest and the size that the hub named.
// progress is called with the bytes that have arrived.
func (h Hub) Fetch(ctx context.Context, s Snapshot, f File, path string, progress func(bytes int64)) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	sum, digest := f.hash()
	var at int64
	for try := 0; ; try++ {
		n, err := h.part(ctx, s, f, at, io.MultiWriter(to, sum), progress)
		at += n
		if err == nil && (f.Size < 0 || at >= f.Size) {
			break
		}
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		if ctx.Err() != nil || try == tries-1 || n == 0 && !errors.Is(err, ErrUnreachable) {
			return fmt.Errorf("hf://%s@%s: fetch %s: %w", s.Repository, s.Commit, f.Name, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.Size >= 0 && at != f.Size {
		return fmt.Errorf("hf://%s@%s: %s has %d bytes, and the hub said %d", s.Repository, s.Commit, f.Name, at,
			f.Size)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); digest != "" && got != digest {
		return fmt.Errorf("hf://%s@%s: %s has the digest %s, and the hub said %s", s.Repository, s.Commit, f.Name, got,
			digest)
	}
	return nil
}

// part copies a file from an offset on, as far as it comes.
func (h Hub) part(ctx context.Context, s Snapshot, f File, at int64, to io.Writer,
	progress func(int64)) (int64, error) {
	from, err := h.Open(ctx, s, f, at)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	return io.Copy(to, &counted{from, at, progress})
}

// hash returns what computes a file's digest, and the digest that the hub named, or "".
func (f File) hash() (hash.Hash, string) {
	if f.SHA256 != "" || f.Blob == "" || f.Size < 0 {
		return sha256.New(), f.SHA256
	}
	h := sha1.New() // the digest that git keeps files under // of git
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	return h, f.Blob
}

// counted reports what was read.
type counted struct {
	io.Reader
	at       int64
	progress func(int64)
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.at += int64(n)
	if c.progress != nil {
		c.progress(c.at)
	}
	return n, err
}
