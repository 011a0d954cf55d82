// Package folder reads a bucket that a local S3 server keeps as plain files: its objects without
// the server. Only the server writes, for it keeps more of an object than its bytes.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ropewalk/ropewalk/store"
)

// ErrReadOnly is in the error of every attempt to write.
var ErrReadOnly = errors.New("the bucket's folder is read only; its S3 server writes")

// Store is a store.Store over a bucket's folder whose writing methods all fail. A folder that is
// not there is an empty store.
type Store struct{ root string }

var _ interface {
	store.Store
	store.Files
} = (*Store)(nil)

// New returns the store of a bucket's folder, which is given by its absolute path.
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
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	return nil, fmt.Errorf("get %s: %w", key, err)
}

// List implements store.Store. It leaves out what the server keeps in the folder for itself.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Object, error) {
	var out []store.Object
	dir := path.Dir(prefix + "x") // the deepest folder that holds all the keys
	err := filepath.WalkDir(s.File(dir), func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil // nothing begins so, or it was deleted meanwhile
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
		out = append(out, store.Object{Key: key, Size: info.Size()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	slices.SortFunc(out, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// serversOwn begins the names of versitygw's own folders in a bucket: uploads that are not whole yet.
const serversOwn = ".sgwtmp"

// Put implements store.Store: it fails.
func (s *Store) Put(_ context.Context, key string, _ []byte) error { return readOnly("put", key) }

// PutIfAbsent implements store.Store: it fails.
func (s *Store) PutIfAbsent(_ context.Context, key string, _ []byte) error {
	return readOnly("put if absent", key)
}

// Delete implements store.Store: it fails.
func (s *Store) Delete(_ context.Context, key string) error { return readOnly("delete", key) }

func readOnly(what, key string) error { return fmt.Errorf("%s %s: %w", what, key, ErrReadOnly) }

// String implements store.Store.
func (s *Store) String() string { return s.root }
