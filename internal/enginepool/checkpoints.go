package enginepool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/schema"
)

// Fetch writes a committed checkpoint's verified files into dir. It fetches the optimiser's state, two
// thirds of the bytes, only if optimizer is set.
func Fetch(ctx context.Context, record *commit.Writer, c schema.Checkpoint, dir string,
	optimizer bool) error {
	for _, file := range c.Files {
		if checkpoint.IsOptimizer(file.Name) && !optimizer {
			continue
		}
		if err := record.FetchFile(ctx, c.Key(file), file.Digest, file.Bytes,
			filepath.Join(dir, file.Name)); err != nil {
			return fmt.Errorf("checkpoint file %s: %w", file.Name, err)
		}
	}
	return nil
}

// VersionName names a checkpoint so that listings are in the order of steps.
func VersionName(step int, digest string) string {
	return fmt.Sprintf("%06d-%s", step, digest[:16])
}

// sharedBase returns, by name, the files of the earlier checkpoint that a new checkpoint in dir may share: the base
// weights of an adapter, if they are stored where nothing is pruned.
func sharedBase(dir string, before *schema.Checkpoint) (map[string]schema.CheckpointFile, error) {
	adapter, err := checkpoint.HasAdapter(dir)
	if err != nil || !adapter || before == nil {
		return nil, err
	}
	shared := map[string]schema.CheckpointFile{}
	for _, f := range before.Files {
		if f.At = before.Key(f); checkpoint.IsWeights(f.Name) && schema.Lasting(f.At) {
			shared[f.Name] = f
		}
	}
	return shared, nil
}

// storeCheckpoint stores the folder's files under prefix, except files that equal a shared one. The files count only
// once a manifest lists them.
func storeCheckpoint(ctx context.Context, record *commit.Writer, dir, digest, prefix string,
	shared map[string]schema.CheckpointFile) (schema.Checkpoint, error) {
	out := schema.Checkpoint{Prefix: prefix, Digest: digest}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return out, fmt.Errorf("list checkpoint files: %w", err)
	}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		sum, size, err := commit.DigestFile(name)
		if err != nil {
			return out, fmt.Errorf("read checkpoint file %s: %w", entry.Name(), err)
		}
		if f, ok := shared[entry.Name()]; ok && f.Digest == sum {
			out.Files = append(out.Files, f)
			continue
		}
		if err := record.PutFile(ctx, prefix+entry.Name(), name, size); err != nil {
			return out, err
		}
		out.Files = append(out.Files, schema.CheckpointFile{Name: entry.Name(), Digest: sum, Bytes: size})
	}
	return out, nil
}
