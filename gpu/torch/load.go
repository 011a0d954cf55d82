package torch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Load makes a folder's model resident. A model that is already resident and known to be the same is not read again. A
// lost engine is started again and then holds only this model.
func (e *Engine) Load(ctx context.Context, role policy.Role, dir string, optimizer bool) error {
	if err := e.load(ctx, role, dir, optimizer); err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	return nil
}

func (e *Engine) load(ctx context.Context, role policy.Role, dir string, optimizer bool) error {
	p, leave, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	fresh, err := checkFolder(role, dir)
	if err != nil {
		return err
	}
	digest, err := checkpoint.Digest(dir)
	if err != nil {
		return err
	}
	if p.isLost() {
		if err := e.restart(ctx); err != nil {
			return fmt.Errorf("%w: start it again: %w", policy.ErrLost, err)
		}
		p = e.live
	}
	a, _, err := ask[wire.LoadAnswer](ctx, e, p, outgoing{name: wire.CallLoad, message: func(h wire.Head) any {
		return wire.Load{Head: h, Role: string(role), Dir: dir, Optimizer: optimizer, Digest: digest}
	}})
	if err != nil {
		return err
	}
	if fresh {
		digest = ""
	}
	if a.Digest != digest {
		p.endOnBreach(fmt.Errorf("%w: what was loaded has the digest %q, the folder %q", wire.ErrProtocol, a.Digest,
			digest))
		return p.lost
	}
	e.dropKept(role)
	e.opts.Logger.Info(
		"model loaded", "role", role, "params", a.Params, "step", a.Step, "reused", a.Reused, "seconds", a.Seconds,
	)
	return nil
}

// checkFolder refuses a folder that is wrong as far as this is visible without reading the weights. It reports a critic
// that begins fresh.
func checkFolder(role policy.Role, dir string) (fresh bool, err error) {
	if remote, err := checkpoint.IsRemote(dir); err != nil || remote {
		if err == nil {
			err = fmt.Errorf("%w: %s: the adapter is at a Tinker server, which offers no download",
				policy.ErrBadRequest, checkpoint.FileReference)
		}
		return false, err
	}
	text, err := os.ReadFile(filepath.Join(dir, checkpoint.FileConfig))
	if err != nil {
		return false, fmt.Errorf("%s: %w", dir, err)
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(text, &config); err != nil {
		return false, fmt.Errorf("%w: %s: %w", checkpoint.ErrCorrupt, checkpoint.FileConfig, err)
	}
	if _, ok := config["auto_map"]; ok {
		return false, fmt.Errorf(
			"%w: %s: auto_map names code of the model's own, which is not run", policy.ErrBadRequest,
			checkpoint.FileConfig,
		)
	}
	if _, ok := config["model_type"]; !ok {
		return false, fmt.Errorf("%w: %s has no model_type", checkpoint.ErrCorrupt, checkpoint.FileConfig)
	}
	head, err := checkpoint.ValueHeadIn(dir)
	switch {
	case err != nil:
		return false, err
	case role == policy.RoleCritic:
		return head == "", nil
	case head != "":
		return false, fmt.Errorf("%w: %s holds a critic: there is a %s", policy.ErrBadRequest, dir, head)
	}
	return false, nil
}

// dropKept forgets the kept passes of a role, which the engine has dropped.
func (e *Engine) dropKept(role policy.Role) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, k := range e.kept {
		if k.role == role {
			delete(e.kept, id)
		}
	}
}

// State returns what is resident. A lost engine has nothing resident.
func (e *Engine) State(ctx context.Context, role policy.Role) (policy.State, error) {
	p, leave, err := e.acquire(ctx)
	if err != nil {
		return policy.State{}, fmt.Errorf("state: %w", err)
	}
	defer leave()
	if p.isLost() {
		return policy.State{}, nil
	}
	a, _, err := ask[wire.StateAnswer](ctx, e, p, ofRole(wire.CallState, role))
	if err != nil {
		return policy.State{}, fmt.Errorf("state: %w", err)
	}
	if !a.Loaded {
		return policy.State{}, nil
	}
	return policy.State{Digest: a.Digest, Step: a.Step, Params: a.Params}, nil
}

// Unload frees the model of a role with its gradients and kept passes. An empty role is not an error.
func (e *Engine) Unload(ctx context.Context, role policy.Role) error {
	return e.runCall(ctx, fmt.Sprintf("unload %s", role), func(p *process) error {
		_, _, err := ask[wire.Answer](ctx, e, p, ofRole(wire.CallUnload, role))
		if err == nil {
			e.dropKept(role)
		}
		return err
	})
}

// ofRole is a call whose only field is a role.
func ofRole(name string, role policy.Role) outgoing {
	return outgoing{name: name, message: func(h wire.Head) any { return wire.OfRole{Head: h, Role: string(role)} }}
}
