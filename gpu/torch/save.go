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

// Save writes what is resident beside the folder dir and, when it is whole, puts it in its place: a save that fails
// leaves dir as it was.
func (e *Engine) Save(ctx context.Context, role policy.Role, dir string) (digest string, err error) {
	err = e.with(ctx, fmt.Sprintf("save %s", role), func(p *process) error {
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
	defer os.RemoveAll(half) // nothing is there once it has been renamed
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
	// The system's rename, unlike os.Rename, takes the place of an empty folder.
	if err := errors.Join(os.Chmod(half, mode), syscall.Rename(half, dir)); err != nil {
		return "", fmt.Errorf("put %s in its place: %w", dir, err)
	}
	_, _, err = ask[wire.Answer](ctx, e, p, outgoing{name: wire.CallSaved, message: func(h wire.Head) any {
		return wire.Saved{Head: h, Role: string(role), Digest: digest}
	}})
	return digest, err
}

// emptyFolder refuses a folder that holds something, and gives the mode that the folder has or is to have.
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
