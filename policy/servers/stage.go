package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// stagePrefix begins the names of what this package writes to a server's folder.
const stagePrefix = "ropewalk-"

// stage writes a version to the server's folder, unless it is there, and returns its path as the server sees it. write
// fills a new folder, which gets its name once it is whole.
func (l *link) stage(digest string, write func(to string) error) (there string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("server %s: folder: write version %.16s: %w", l.Name(), digest, err)
		}
	}()
	name := stagePrefix + digest
	whole := filepath.Join(l.Folder, name)
	if _, err := os.Stat(whole); err == nil {
		return l.there(name), nil
	}
	part, err := os.MkdirTemp(l.Folder, ".part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := errors.Join(os.Chmod(part, 0o755), write(part)); err != nil {
		return "", err
	}
	if err := os.Rename(part, whole); err != nil {
		if _, there := os.Stat(whole); there != nil { // another worker has not written it either
			return "", err
		}
	}
	return l.there(name), nil
}

// unstage removes the versions before the one of digest. A server has read them, or never will.
func (l *link) unstage(digest string) {
	if l.Folder == "" {
		return
	}
	entries, err := os.ReadDir(l.Folder)
	if err != nil {
		return // there is nothing to remove
	}
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && len(name) == len(stagePrefix)+len(digest) &&
			strings.HasPrefix(name, stagePrefix) && name != stagePrefix+digest {
			_ = os.RemoveAll(filepath.Join(l.Folder, name)) // it takes room and does no harm
		}
	}
}

// copyCheckpoint copies the files that make a checkpoint's digest, without training state.
func copyCheckpoint(from, to string) error { return eachFile(from, to, checkpoint.CopyFile) }

// eachFile does something with each of those files, from its path in a folder to that in another.
func eachFile(from, to string, do func(from, to string) error) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); checkpoint.Counts(name) && !checkpoint.IsOptimizer(name) {
			if err := do(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeUntied writes the model for programs that read Hugging Face folders. The output head is written even if it is
// the embedding: vLLM does not reload a head that it shares with the embedding.
func writeUntied(c *checkpoint.Checkpoint, to, dtype string) error {
	model, err := c.Untie()
	if err != nil {
		return err
	}
	kind := checkpoint.F32
	if dtype == "bfloat16" {
		kind = checkpoint.BF16
	}
	return checkpoint.WriteModel(to, model, kind)
}

// modelDigest returns the digest that a folder has without training state.
func modelDigest(dir string) (string, error) {
	bare, err := os.MkdirTemp("", "ropewalk-model-")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(bare)
	if err := eachFile(dir, bare, os.Symlink); err != nil {
		return "", err
	}
	return checkpoint.Digest(bare)
}
