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
	if err != nil {
		return nil, err
	}
	remote, err := checkpoint.IsRemote(dir)
	if err != nil || !adapter && !remote || before == nil {
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

// StoreFolder stores the model in a folder that no engine has saved, under a prefix of the place, and returns the
// checkpoint for the manifest. Training state and files that belong to no checkpoint are left out.
func StoreFolder(ctx context.Context, record *commit.Writer, folder, scratch string, place schema.Place) (
	schema.Checkpoint, error) {
	none := schema.Checkpoint{}
	dir, err := os.MkdirTemp(scratch, "folder-")
	if err != nil {
		return none, fmt.Errorf("make a folder for a checkpoint: %w", err)
	}
	defer os.RemoveAll(dir)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return none, fmt.Errorf("list checkpoint files: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if !checkpoint.IsModel(name) {
			continue
		}
		if err := os.Symlink(filepath.Join(folder, name), filepath.Join(dir, name)); err != nil {
			return none, fmt.Errorf("take checkpoint file %s: %w", name, err)
		}
	}
	return StoreWhole(ctx, record, dir, place)
}

// StoreWhole stores a whole folder that no engine has saved as the checkpoint of step 0 of a place.
func StoreWhole(ctx context.Context, record *commit.Writer, dir string,
	place schema.Place) (schema.Checkpoint, error) {
	digest, err := checkpoint.Digest(dir)
	if err != nil {
		return schema.Checkpoint{}, err
	}
	weights, err := checkpoint.WeightsDigest(dir)
	if err != nil {
		return schema.Checkpoint{}, err
	}
	out, err := record.PutFolder(ctx, dir, digest, place.CheckpointPrefix(VersionName(0, digest)), nil)
	out.Weights = weights
	return out, err
}
