package tinker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Load gives a role an adapter of its own at the server: that of the folder's tinker.json, or a new one if the folder
// holds a base alone. Its log-probabilities of the probe must be those of the folder.
func (e *Engine) Load(ctx context.Context, name policy.Role, dir string, optimizer bool) error {
	return e.call(ctx, "load "+string(name), func() error { return e.load(ctx, name, dir, optimizer) })
}

func (e *Engine) load(ctx context.Context, name policy.Role, dir string, optimizer bool) error {
	if name == policy.RoleCritic {
		return bad("a Tinker server has no value heads, so no critic")
	}
	shape, err := shapeOf(dir)
	if err != nil {
		return err
	}
	ref, err := readReference(dir)
	if err != nil {
		return err
	}
	if err := e.fits(dir, shape, ref); err != nil {
		return err
	}
	digest, err := checkpoint.Digest(dir)
	if err != nil {
		return err
	}
	if e.session == nil {
		if e.session, e.facts, err = survey(ctx, e.link, e.o, shape); err != nil {
			return e.after(ctx, err)
		}
	}
	r := &role{shape: shape, digest: digest, kept: map[policy.Kept]pass{}, sealed: ref != nil && !optimizer}
	if ref != nil && optimizer {
		r.step = ref.Step
	}
	if r.folder, err = e.newFolder(); err != nil {
		return err
	}
	err = copyFolder(dir, r.folder, everything)
	if err == nil {
		err = e.after(ctx, e.place(ctx, r, ref))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(r.folder))
	}
	if before := e.roles[name]; before != nil {
		e.session.unload(ctx, before.model)
		e.drop(name)
	}
	e.roles[name] = r
	return nil
}

// fits refuses folders that the server cannot have.
func (e *Engine) fits(dir string, shape checkpoint.Shape, ref *reference) error {
	adapter, err := checkpoint.HasAdapter(dir)
	switch {
	case err != nil:
		return err
	case adapter && ref == nil:
		return bad("the folder holds an adapter that no Tinker server has saved, and the API takes no weights; " +
			"engine.kind: torch trains it")
	case ref != nil && ref.BaseModel != e.o.Server.BaseModel:
		return bad("the folder's adapter is one of the base model %s, engine.tinker.base_model is %s", ref.BaseModel,
			e.o.Server.BaseModel)
	case ref != nil && ref.Rank != e.o.LoRA.Rank:
		return bad("the folder's adapter has rank %d, engine.lora.rank is %d", ref.Rank, e.o.LoRA.Rank)
	case shape.Vocab < 8:
		return bad("a vocabulary of %d", shape.Vocab)
	}
	return nil
}

// place makes the adapter at the server and compares what it says about the probe.
func (e *Engine) place(ctx context.Context, r *role, ref *reference) (err error) {
	s := e.session
	if r.model, err = s.create(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.unload(context.WithoutCancel(ctx), r.model)
		}
	}()
	path := ""
	if ref != nil {
		path = ref.Weights
	}
	if !e.facts.LoadFirst {
		// Gradients that somebody else has left in the adapter's place are dropped. For a new adapter, its own first
		// state is put back, since the step that drops them counts.
		if path == "" {
			if path, err = s.save(ctx, r.model); err != nil {
				return err
			}
		}
		if err := s.flush(ctx, r.model); err != nil {
			return err
		}
	}
	if path != "" {
		if err := s.load(ctx, r.model, path); err != nil {
			if gone(err) && ref != nil {
				return s.lostPath(path, err)
			}
			return err
		}
	}
	return e.verify(ctx, r, ref)
}

// lostPath says that a checkpoint is no longer at the server, which another try does not change.
func (l *link) lostPath(path string, err error) error {
	return fmt.Errorf("%w: %w", policy.ErrBadRequest, &Fault{Server: l.Name(),
		Text: l.client.Conceal(fmt.Sprintf("it no longer has %s: %v", path, err)),
		Remedy: "where the checkpoint holds its adapter (adapter_model.safetensors), policy.checkpoint run:RUN@STEP " +
			"of another engine takes it, merged into its base"})
}

// verify compares the log-probabilities of the probe with those of the save, or with our own forward pass.
func (e *Engine) verify(ctx context.Context, r *role, ref *reference) error {
	ids := probeIDs(r.shape.Vocab)
	if ref != nil {
		ids = ref.Probe
	}
	if len(ids) > r.shape.Positions {
		ids = ids[:r.shape.Positions]
	}
	out, err := e.session.forward(ctx, r.model, [][]int32{ids})
	if err != nil {
		return fmt.Errorf("score the probe: %w", err)
	}
	if ref != nil {
		err := e.link.compare(out[0][1:], ref.LogProbs, "the save",
			"the server has other weights under this path, or another base model")
		if err != nil {
			return err
		}
	}
	return e.compareOwn(ctx, r.folder, ids, out[0][1:])
}

// compareOwn compares log-probabilities with our own forward pass over a folder, once for a base and once for an
// adapter: a forward pass on a processor takes long.
func (e *Engine) compareOwn(ctx context.Context, dir string, ids []int32, got []float32) error {
	if e.o.Score == nil || !e.o.Server.Verify || e.compared {
		return nil
	}
	reference, err := readReference(dir)
	if err != nil {
		return err
	}
	adapter, err := checkpoint.HasAdapter(dir)
	if err != nil || reference != nil && !adapter { // the adapter is at the server alone
		return err
	}
	want, err := e.o.Score(ctx, dir, ids)
	if err != nil {
		return fmt.Errorf("compute our own log-probabilities of the probe: %w", err)
	}
	err = e.link.compare(got, want, "our own forward pass",
		"engine.tinker.base_model must be the model at policy.checkpoint; raise engine.tinker.tolerance if the server "+
			"computes in bfloat16")
	e.compared = err == nil && adapter
	return err
}

// Save stores the model at the server and writes the checkpoint folder.
func (e *Engine) Save(ctx context.Context, name policy.Role, dir string) (digest string, err error) {
	err = e.call(ctx, "save "+string(name), func() error {
		r, err := e.loaded(name)
		if err == nil {
			err = emptyFolder(dir)
		}
		if err == nil && r.digest == "" {
			err = e.after(ctx, e.save(ctx, r))
		}
		if err == nil {
			err = copyFolder(r.folder, dir, everything)
		}
		if err == nil {
			digest = r.digest
		}
		return err
	})
	return digest, err
}

// save stores the model at the server and its files in a new folder of the role.
func (e *Engine) save(ctx context.Context, r *role) (err error) {
	ref := reference{BaseModel: e.o.Server.BaseModel, Rank: e.o.LoRA.Rank, Step: r.step, Probe: probeIDs(r.shape.Vocab)}
	if len(ref.Probe) > r.shape.Positions {
		ref.Probe = ref.Probe[:r.shape.Positions]
	}
	out, err := e.session.forward(ctx, r.model, [][]int32{ref.Probe})
	if err != nil {
		return fmt.Errorf("score the probe: %w", err)
	}
	ref.LogProbs = out[0][1:]
	if ref.Weights, err = e.session.save(ctx, r.model); err != nil {
		return err
	}
	if err := e.published(ctx, r); err != nil {
		return err
	}
	ref.Sampler = r.path
	folder, err := e.newFolder()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	if err := errors.Join(copyFolder(r.folder, folder, isBase), ref.write(folder)); err != nil {
		return err
	}
	a, err := e.session.download(ctx, ref.Sampler, r.shape)
	switch {
	case errors.Is(err, errNoDownload) && !e.facts.Downloads:
	case err != nil:
		return err
	default:
		e.facts.Downloads = true
		if err := a.write(folder, e.o.LoRA); err != nil {
			return err
		}
		if err := e.compareOwn(ctx, folder, ref.Probe, ref.LogProbs); err != nil {
			return err
		}
	}
	digest, err := checkpoint.Digest(folder)
	if err != nil {
		return err
	}
	before := r.folder
	r.folder, r.digest = folder, digest
	return os.RemoveAll(filepath.Clean(before))
}

// published makes sure that the current weights have a path for sampling.
func (e *Engine) published(ctx context.Context, r *role) (err error) {
	if r.path == "" {
		r.path, err = e.session.publish(ctx, r.model)
	}
	return err
}
