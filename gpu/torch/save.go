package torch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Save writes the role's model to a folder next to dir and, when it is complete, renames that folder to dir. A save
// that fails leaves dir as it was.
func (e *Engine) Save(ctx context.Context, role policy.Role, dir string) (digest string, err error) {
	err = e.runCall(ctx, fmt.Sprintf("save %s", role), func(p *process) error {
		digest, err = e.save(ctx, p, role, dir)
		return err
	})
	return digest, err
}

func (e *Engine) save(ctx context.Context, p *process, role policy.Role, dir string) (string, error) {
	mode, err := emptyFolder(dir)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	half, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".half-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(half) // after the rename there is nothing to remove
	_, _, err = ask[wire.SaveAnswer](ctx, e, p, outgoing{name: wire.CallSave, message: func(h wire.Head) any {
		return wire.Save{Head: h, Role: string(role), Dir: half}
	}})
	if err != nil {
		return "", err
	}
	digest, err := checkpoint.Digest(half)
	if err != nil {
		return "", err
	}
	// The system's rename replaces an empty folder; os.Rename does not.
	if err := errors.Join(os.Chmod(half, mode), syscall.Rename(half, dir)); err != nil {
		return "", fmt.Errorf("put %s in its place: %w", dir, err)
	}
	// The checkpoint is complete, whatever happens to the engine now. The engine only learns the digest, so that it can
	// reuse its resident model.
	_, _, err = ask[wire.Answer](context.WithoutCancel(ctx), e, p,
		outgoing{name: wire.CallSaved, message: func(h wire.Head) any {
			return wire.Saved{Head: h, Role: string(role), Digest: digest}
		}})
	if err != nil {
		e.opts.Logger.Warn("engine was not told what it has saved", "role", role, "error", err)
	}
	return digest, nil
}

// emptyFolder refuses a folder that is not empty. It returns the mode that the folder has or will have.
func emptyFolder(dir string) (fs.FileMode, error) {
	held, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0o755, nil
	}
	if err != nil {
		return 0, err
	}
	if len(held) > 0 {
		return 0, fmt.Errorf("folder %s is not empty: %w: %s", dir, fs.ErrExist, held[0].Name())
	}
	info, err := os.Stat(dir)
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
}
