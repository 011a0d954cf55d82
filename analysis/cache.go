package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/schema"
)

// mostCached is the size, in bytes, to which a cache is trimmed when it is opened.
const mostCached = 4 << 30

// grace is how long a used file is safe from Trim.
const grace = time.Hour

// Cache keeps objects of the record in a folder of the local disk, one file each, named by digest. Processes may share
// it. It is safe for concurrent use.
//
// The object that a digest names never changes, so a cached file is valid for every run and store: files are verified
// when they are written, renamed into place, and read-only. The folder may be deleted at any time. Its size is bounded:
// Trim deletes the files that were used longest ago, but none that was used within the last hour, since another process
// may be reading it.
type Cache struct{ dir string }

// OpenCache trims the folder to mostCached. The first Put creates the folder if needed.
func OpenCache(dir string) (*Cache, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open cache %s: %w", dir, err)
	}
	c := &Cache{dir: absolute}
	return c, c.Trim(mostCached, time.Now())
}

// Dir is the folder's absolute path.
func (c *Cache) Dir() string { return c.dir }

// path is <2 hex>/<digest>.<ext> below the folder.
func (c *Cache) path(digest, ext string) string {
	return filepath.Join(c.dir, digest[:2], digest+"."+ext)
}

// Find returns the path of the file with the digest and size, if there is one, and records its use.
func (c *Cache) Find(digest, ext string, size int64) (string, bool) {
	path := c.path(digest, ext)
	info, err := os.Stat(path)
	if err != nil || info.Size() != size {
		return "", false
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // an unrecorded use costs at most another fetch
	return path, true
}

// Get returns the bytes with the digest, if they are cached and intact.
func (c *Cache) Get(digest, ext string) ([]byte, bool) {
	data, err := os.ReadFile(c.path(digest, ext))
	if err != nil || schema.Digest(data) != digest {
		return nil, false
	}
	return data, true
}

// Put stores data, which must have the digest, and returns its path.
func (c *Cache) Put(digest, ext string, data []byte) (string, error) {
	if got := schema.Digest(data); got != digest {
		return "", fmt.Errorf("cache object %s: its bytes have the digest %s", digest, got)
	}
	path := c.path(digest, ext)
	if err := c.write(path, data); err != nil {
		return "", fmt.Errorf("cache object %s: %w", digest, err)
	}
	return path, nil
}

func (c *Cache) write(path string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "writing-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Chmod(0o444), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Trim deletes the files used longest ago until at most limit bytes remain. It keeps files that were used in the hour
// before now. Leftovers of a writer that died age like any other file.
func (c *Cache) Trim(limit int64, now time.Time) error {
	type file struct {
		path string
		used time.Time
		size int64
	}
	var files []file
	total := int64(0)
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == c.dir {
			return nil // nothing was ever put
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process renamed it
		}
		if err != nil {
			return err
		}
		files = append(files, file{path, info.ModTime(), info.Size()})
		total += info.Size()
		return nil
	})
	if err != nil {
		return fmt.Errorf("trim cache: %w", err)
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(a.used.Compare(b.used), strings.Compare(a.path, b.path))
	})
	for _, f := range files {
		if total <= limit || now.Sub(f.used) < grace {
			break
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("trim cache: %w", err)
		}
		total -= f.size
	}
	return nil
}
