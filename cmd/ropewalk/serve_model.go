package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
	"github.com/ropewalk/ropewalk/internal/hub"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/schema"
)

// servedFolder brings a checkpoint into a folder of its own below dir, or of the hub's cache. name is how requests name
// the model.
func servedFolder(ctx context.Context, con *console, checkpoint, dir string) (folder, name string, err error) {
	to := filepath.Join(dir, "checkpoint")
	scheme, rest, addressed := strings.Cut(checkpoint, "://")
	run := strings.TrimPrefix(checkpoint, "run:")
	named := namedModel(checkpoint)
	switch {
	case addressed && scheme == "hf":
		folder, name, err = hubFolder(ctx, con, rest)
	case addressed && scheme == "s3":
		name = strings.TrimSuffix(path.Base(rest), ".gguf")
		folder, err = to, bucketFolder(ctx, con, rest, dir, to)
	case addressed:
		return "", "", badInput("%s: want a path, hf://, s3://, RUN[@STEP] or the name of a model", checkpoint)
	case isFolder(checkpoint) || strings.HasSuffix(checkpoint, ".gguf") && (named == "" || exists(checkpoint)):
		folder, name, err = localFolder(checkpoint, to)
	case named != "":
		folder, name, err = localFolder(named, to)
	default:
		return to, run, runFolder(ctx, con, run, to)
	}
	var bad badinput.Error
	if err != nil && !errors.As(err, &bad) && ctx.Err() == nil {
		err = badInput("%s: %w", checkpoint, err)
	}
	return folder, name, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// namedModel is the path of a model in the folder of models, whose name may lack the ending .gguf; "" if there is none.
func namedModel(name string) string {
	for _, file := range []string{name, name + ".gguf"} {
		if at := filepath.Join(modelFolder(), file); modelFolder() != "" && filepath.IsLocal(file) && exists(at) {
			return at
		}
	}
	return ""
}

// localFolder takes a folder or a GGUF file.
func localFolder(from, to string) (folder, name string, err error) {
	absolute, err := filepath.Abs(from)
	if err != nil {
		return "", "", err
	}
	info, err := os.Stat(from)
	if err != nil {
		return "", "", cause.Of(err)
	}
	if info.IsDir() && !exists(filepath.Join(from, "config.json")) {
		return "", "", errors.New("has no config.json: want a folder of a model for Hugging Face's transformers, " +
			"or a GGUF file")
	}
	return to, strings.TrimSuffix(filepath.Base(absolute), ".gguf"), pretrained.Take(from, to)
}

// bucketFolder takes a folder or a GGUF file on the S3 server.
func bucketFolder(ctx context.Context, con *console, address, dir, to string) error {
	bucket, key, err := pretrained.ParseBucket(address)
	if err != nil {
		return err
	}
	s, err := con.connector().ReadBucket(ctx, bucket)
	if err != nil {
		return err
	}
	defer s.Close()
	from, err := pretrained.FetchBucket(ctx, s.Store, key, dir, func(int, int) {})
	if err != nil {
		return err
	}
	return pretrained.Take(from, to)
}

// runFolder writes the policy of a run, with an adapter merged.
func runFolder(ctx context.Context, con *console, policy, to string) error {
	run, which, _ := strings.Cut(policy, "@")
	if err := schema.CheckRunID(run); err != nil {
		return badInput("%s: %w; a folder is named as a path (./%s)", policy, err, policy)
	}
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = export.Model(ctx, record, export.ModelOptions{Run: run, Checkpoint: cmp.Or(which, export.Latest),
		Form: export.HuggingFace, Merge: true}, to)
	switch {
	case errors.Is(err, export.ErrNoCheckpoint):
		return badInput("%s: %w", policy, err)
	case err != nil && exists(policy):
		return badInput("%w; %s is a path too: write ./%s to serve the model there", err, policy, policy)
	case err != nil:
		return runs.Missing(err)
	}
	return nil
}

// hubFolder is the folder of a hub's model in the cache. It is fetched once for each commit. Without the hub, the
// commit is taken that the revision last named.
func hubFolder(ctx context.Context, con *console, address string) (folder, name string, err error) {
	repository, revision, err := hub.Parse(address)
	if err != nil {
		return "", "", err
	}
	home := filepath.Join(stateFolder(), "hub", strings.ReplaceAll(repository, "/", "--"))
	last := filepath.Join(home, "revision-"+strings.ReplaceAll(revision, "/", "--"))
	commit := ""
	if hub.IsCommit(revision) {
		commit = revision
	}
	if folder = filepath.Join(home, commit); commit != "" && exists(folder) {
		return folder, repository, nil
	}
	server := hub.Here("")
	snapshot, err := server.Resolve(ctx, repository, revision)
	if errors.Is(err, hub.ErrUnreachable) {
		if text, missing := os.ReadFile(last); missing == nil {
			commit = strings.TrimSpace(string(text))
		}
		if folder = filepath.Join(home, commit); commit != "" && exists(folder) {
			fmt.Fprintf(con.err, "the hub cannot be reached; %s of %s was fetched before\n", commit, repository)
			return folder, repository, nil
		}
		return "", "", fmt.Errorf("%w; it was not fetched before either", err)
	}
	if err != nil {
		return "", "", err
	}
	if folder = filepath.Join(home, snapshot.Commit); !exists(folder) {
		if err := fetchHub(ctx, con, server, snapshot, folder); err != nil {
			return "", "", err
		}
	}
	return folder, repository, os.WriteFile(last, []byte(snapshot.Commit+"\n"), 0o600)
}

// fetchHub fetches a snapshot to a folder that appears only when it is complete.
func fetchHub(ctx context.Context, con *console, server hub.Hub, s hub.Snapshot, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(folder), ".part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	fmt.Fprintf(con.err, "fetching %s at %s…\n", s.Repository, s.Commit)
	whole := filepath.Join(part, "model")
	said := 0
	report := func(done, total int) {
		if tenth := 10 * done / max(total, 1); tenth > said {
			said = tenth
			fmt.Fprintf(con.err, "%d of %d MiB\n", done, total)
		}
	}
	if err := pretrained.FetchHub(ctx, server, s, whole, report); err != nil {
		return err
	}
	if err := pretrained.Check(whole); err != nil {
		return err
	}
	if err := os.Rename(whole, folder); err != nil && !exists(folder) {
		return err
	}
	return nil
}
