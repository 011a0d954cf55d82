// Package folder reads a bucket that a local S3 server keeps as plain files, without the server. Only the server may
// write, because it keeps more of an object than its bytes.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/store"
)

// ErrReadOnly is wrapped by the error of every attempt to write.
var ErrReadOnly = errors.New("the bucket's folder is read only; its S3 server writes")

// Store is a store.Store over a bucket's folder. All its writing methods fail. A folder that does not exist is an empty
// store.
type Store struct{ root string }

var _ interface {
	store.Store
	store.Files
} = (*Store)(nil)

// New returns the store over a bucket's folder, given by its absolute path.
func New(root string) *Store { return &Store{root: root} }

// Root implements store.Files.
func (s *Store) Root() string { return s.root }

// File implements store.Files.
func (s *Store) File(key string) string { return filepath.Join(s.root, filepath.FromSlash(key)) }

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	data, err := os.ReadFile(s.File(key))
	return found(key, data, err)
}

// found turns the error for a missing file into store.ErrNotFound.
func found(key string, data []byte, err error) ([]byte, error) {
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	return nil, fmt.Errorf("get %s: %w", key, err)
}

// GetRange implements store.Store.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := errors.Join(store.CheckKey(key), store.CheckRange(key, offset, length)); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	f, err := os.Open(s.File(key))
	if err != nil {
		return found(key, nil, err)
	}
	defer f.Close() // it was only read
	data, err := io.ReadAll(io.NewSectionReader(f, offset, length))
	return found(key, data, err)
}

// List implements store.Store. It leaves out the server's own files in the folder.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Object, error) {
	var out []store.Object
	dir := path.Dir(prefix + "x") // the deepest folder that holds all keys with the prefix
	err := filepath.WalkDir(s.File(dir), func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil // no key has the prefix, or the file was deleted since it was listed
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		relative, err := filepath.Rel(s.root, name)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(relative)
		switch {
		case d.IsDir() && strings.HasPrefix(key, serversOwn):
			return fs.SkipDir
		case !d.Type().IsRegular() || !strings.HasPrefix(key, prefix):
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		out = append(out, store.Object{Key: key, Size: info.Size(), Modified: info.ModTime().Truncate(listed)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	slices.SortFunc(out, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// listed is the resolution of times in the server's own listing.
const listed = time.Second

// serversOwn is the prefix of the names of versitygw's own folders in a bucket, which hold unfinished uploads.
const serversOwn = ".sgwtmp"

// Put implements store.Store: it fails.
func (s *Store) Put(_ context.Context, key string, _ []byte) error { return readOnly("put", key) }

// PutFrom implements store.Store: it fails.
func (s *Store) PutFrom(_ context.Context, key string, _ io.ReaderAt, _ int64) error {
	return readOnly("put", key)
}

// MaxObject implements store.Store: no object can be put.
func (s *Store) MaxObject() int64 { return 0 }

// PutIfAbsent implements store.Store: it fails.
func (s *Store) PutIfAbsent(_ context.Context, key string, _ []byte) error {
	return readOnly("put if absent", key)
}

// Delete implements store.Store: it fails.
func (s *Store) Delete(_ context.Context, key string) error { return readOnly("delete", key) }

func readOnly(what, key string) error { return fmt.Errorf("%s %s: %w", what, key, ErrReadOnly) }

// String implements store.Store.
func (s *Store) String() string { return s.root }
