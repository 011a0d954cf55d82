package pretrained

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/internal/hub"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/store"
)

// Progress is told how much of something is done.
type Progress func(done, total int)

// FetchHub fetches a hub's snapshot to the folder to, which must not exist: first what is small, which may show that
// the model is not supported. progress is told MiB of weights.
func FetchHub(ctx context.Context, server hub.Hub, s hub.Snapshot, to string, progress Progress) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	var small, weights []hub.File
	var bytes int64
	for _, f := range s.Files {
		switch {
		case checkpoint.IsWeights(f.Name):
			weights, bytes = append(weights, f), bytes+max(0, f.Size)
		case wanted(f.Name):
			small = append(small, f)
		}
	}
	for _, f := range small {
		if err := server.Fetch(ctx, s, f, filepath.Join(to, f.Name), nil); err != nil {
			return err
		}
	}
	if _, err := Describe(to); err != nil {
		return err
	}
	if len(weights) == 0 {
		return errors.New("the repository has no *.safetensors")
	}
	var before int64
	for _, f := range weights {
		report := func(n int64) { progress(int((before+n)>>20), int(bytes>>20)) }
		if err := server.Fetch(ctx, s, f, filepath.Join(to, f.Name), report); err != nil {
			return err
		}
		before += max(0, f.Size)
	}
	return nil
}

// FetchBucket fetches the model at a key of a bucket to a path in the folder dir, which it returns: a GGUF file, or a
// folder's files. progress is told files.
func FetchBucket(ctx context.Context, objects store.Store, key, dir string, progress Progress) (string, error) {
	if strings.HasSuffix(key, ".gguf") {
		path := filepath.Join(dir, "model.gguf")
		listed, err := objects.List(ctx, key)
		if err == nil && (len(listed) == 0 || listed[0].Key != key) {
			err = fmt.Errorf("%s: %w", key, store.ErrNotFound)
		}
		if err != nil {
			return path, err
		}
		return path, download(ctx, objects, listed[0], path)
	}
	listed, err := objects.List(ctx, key+"/")
	if err != nil {
		return "", err
	}
	if len(listed) == 0 {
		return "", errors.New("there are no objects")
	}
	from := filepath.Join(dir, "from")
	if err := os.Mkdir(from, 0o700); err != nil {
		return "", err
	}
	for i, o := range listed {
		file := strings.TrimPrefix(o.Key, key+"/")
		if !wanted(file) {
			continue
		}
		if err := download(ctx, objects, o, filepath.Join(from, file)); err != nil {
			return "", err
		}
		progress(i+1, len(listed))
	}
	return from, nil
}

// ParseBucket splits BUCKET/KEY.
func ParseBucket(address string) (bucket, key string, err error) {
	bucket, key, _ = strings.Cut(strings.TrimRight(address, "/"), "/")
	if bucket == "" || key == "" {
		return "", "", errors.New("the address is not s3://BUCKET/KEY")
	}
	return bucket, key, nil
}

// download copies an object to a file.
func download(ctx context.Context, objects store.Store, o store.Object, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = store.Copy(ctx, objects, o.Key, o.Size, f)
	return errors.Join(err, f.Close())
}
