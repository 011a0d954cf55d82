package commit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// DigestFile returns the digest and the size of a file without holding it in memory.
func DigestFile(name string) (digest string, size int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() // it was only read
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// PutFile puts the first size bytes of a file under a key that contains the digest of what the file belongs to. The
// file is read while it is sent and must not change until PutFile returns, or the audit will find bytes with another
// digest.
func (w *Writer) PutFile(ctx context.Context, key, name string, size int64) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("put file %s: %w", key, err)
	}
	defer f.Close() // it was only read
	if err := w.store.PutFrom(ctx, key, f, size); err != nil {
		return fmt.Errorf("put file: %w", err)
	}
	return nil
}

// PutFolder stores a folder's files under prefix as a checkpoint, except files that equal a shared one. The files count
// only once a manifest lists them.
func (w *Writer) PutFolder(ctx context.Context, dir, digest, prefix string,
	shared map[string]schema.CheckpointFile) (schema.Checkpoint, error) {
	out := schema.Checkpoint{Prefix: prefix, Digest: digest}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return out, fmt.Errorf("list checkpoint files: %w", err)
	}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		sum, size, err := DigestFile(name)
		if err != nil {
			return out, fmt.Errorf("read checkpoint file %s: %w", entry.Name(), err)
		}
		if f, ok := shared[entry.Name()]; ok && f.Digest == sum {
			out.Files = append(out.Files, f)
			continue
		}
		if err := w.PutFile(ctx, prefix+entry.Name(), name, size); err != nil {
			return out, err
		}
		out.Files = append(out.Files, schema.CheckpointFile{Name: entry.Name(), Digest: sum, Bytes: size})
	}
	return out, nil
}

// FetchFile writes the object under a key, with the digest and size that a manifest names, to a new file. After an
// error there is no file.
func (w *Writer) FetchFile(ctx context.Context, key, digest string, size int64, name string) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", key, err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	return w.copyChecked(ctx, key, digest, size, f)
}

// CheckObject reads the object under a key and returns ErrDamaged unless it has this digest and size. It holds only a
// small part of the object in memory.
func (w *Writer) CheckObject(ctx context.Context, key, digest string, size int64) error {
	return w.copyChecked(ctx, key, digest, size, io.Discard)
}

func (w *Writer) copyChecked(ctx context.Context, key, digest string, size int64, to io.Writer) error {
	h := sha256.New()
	n, err := store.Copy(ctx, w.store, key, size, io.MultiWriter(h, to))
	switch got := hex.EncodeToString(h.Sum(nil)); {
	case errors.Is(err, store.ErrNotFound):
		return damaged(key, fmt.Errorf("it is missing though a manifest lists it: %w", err))
	case err != nil:
		return err
	case n > size:
		return damaged(key, fmt.Errorf("its manifest says %d bytes, but it has more", size))
	case n < size:
		return damaged(key, fmt.Errorf("its manifest says %d bytes, but it has %d", size, n))
	case got != digest:
		return damaged(key, fmt.Errorf("its %d bytes have the digest %s, want %s", n, got, digest))
	}
	return nil
}
