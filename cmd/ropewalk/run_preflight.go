package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/download"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/store"
)

// preflightHere tries what a recipe names on this machine, as the preparation of a run does on the worker's. It returns
// notes about the run, and an error for what no run could begin with. A recipe that cannot run yet is not tried.
func preflightHere(ctx context.Context, r *recipes.Recipe) (notes []string, err error) {
	if len(r.Planned())+len(r.Unset()) > 0 || r.Environment.Imported() {
		return nil, nil
	}
	elsewhere := os.Getenv("TEMPORAL_ADDRESS") != "" // workers of another machine may have other folders
	if path := r.Policy.Checkpoint; filepath.IsAbs(path) && !elsewhere {
		if _, err := os.Stat(path); err != nil {
			return nil, badInput("policy.checkpoint: %w", err)
		}
	}
	if elsewhere && len(r.Privileged()) > 0 {
		return []string{"not tried here, because the workers are elsewhere: " + strings.Join(r.Privileged(), "; ")}, nil
	}
	if f, ok := r.Function(); ok && f.Module != "" {
		functions := &remote.Functions{}
		if _, err := functions.Code(ctx, f); err != nil {
			return nil, badInput("reward: %w", err)
		}
	}
	if r.Reward.Symbolic && !elsewhere {
		if err := symbolicHere(ctx); err != nil {
			return nil, badInput("reward.symbolic: %w", err)
		}
	}
	if notes, err = chatHere(r); err != nil {
		return nil, err
	}
	found, err := worldHere(ctx, r)
	return append(notes, found...), err
}

// chatHere tries the chat template of the model that a recipe starts from, if the model is on this machine.
func chatHere(r *recipes.Recipe) ([]string, error) {
	p, err := r.Protocol()
	if _, chat := p.(protocol.Chat); err != nil || !chat || r.Policy.Checkpoint == "" {
		return nil, err
	}
	path, folder := r.Policy.Checkpoint, modelFolder()
	if !filepath.IsAbs(path) && folder != "" {
		path = filepath.Join(folder, path)
	}
	m, err := pretrained.Describe(path)
	if errors.Is(err, fs.ErrNotExist) || !filepath.IsAbs(path) {
		return []string{"the chat template of " + r.Policy.Checkpoint + " is read when the run is prepared"}, nil
	}
	if err != nil {
		return nil, badInput("policy.checkpoint: %w", err)
	}
	return preflight.ChatNotes(r, &m)
}

// errBucket is the error of a bucket's files, which a worker with the store's keys opens.
var errBucket = errors.New("is read when the run is prepared")

// worldHere tries the recipe's environment. A server that is away, and files on the S3 server, are notes.
func worldHere(ctx context.Context, r *recipes.Recipe) ([]string, error) {
	bucket := func(string) (store.Store, error) { return nil, errBucket }
	world, err := r.OpenWith(download.Opener{Bucket: bucket}.Open)
	if err != nil {
		return nil, badinput.Of(err)
	}
	notes, err := preflight.World(ctx, r, world, true)
	if err == nil {
		err = preflight.Filters(ctx, r, world)
	}
	if errors.Is(err, errBucket) || errors.Is(err, remote.ErrLost) {
		return append(notes, fmt.Sprintf("not tried: %v", err)), nil
	}
	return notes, err
}

// symbolicHere asks the sandbox of this machine to compare two expressions.
func symbolicHere(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "ropewalk-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	executor, err := zygote.Open(zygote.Options{Python: sandboxPython(""), Preferred: toolsPython(), Workers: 1,
		Dir: folder, MinTier: sandbox.TierRlimits})
	if err != nil {
		return err
	}
	defer executor.Close()
	return symbolic.Available(ctx, executor)
}
