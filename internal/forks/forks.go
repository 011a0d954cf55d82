// Package forks makes runs that share the first steps of other runs.
//
// A fork has a recipe and a first policy of its own. Its heads of the shared steps name the other run's manifests, so
// nothing is copied, and everything that reads a step by its head needs to know nothing of forks:
//
//	At (the step and its recipe) → Resolve (with changes) → Share (heads) → the run goes on after the step
package forks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Point is where runs can fork off another run.
type Point struct {
	schema.ForkPoint
	Config schema.Ref     // manifest of the recipe that the step was taken under
	Update schema.Ref     // manifest of the update of the step, with the policy that the fork goes on with
	Recipe recipes.Recipe // of Config
	record *commit.Writer
}

// At finds the point after a step that a run has finished.
func At(ctx context.Context, w *commit.Writer, f schema.ForkPoint) (*Point, error) {
	if err := f.Validate(); err != nil {
		return nil, badinput.Of(err)
	}
	p := &Point{ForkPoint: f, record: w}
	update, err := p.update(ctx, f.Step)
	if err == nil {
		err = p.checkKept(ctx, f.Step)
	}
	if err != nil {
		return nil, err
	}
	p.Config = update.Inputs[0] // every manifest names the recipe first
	config, err := w.Read(ctx, p.Config)
	if err != nil {
		return nil, err
	}
	documents := config.ShardsOf(schema.Documents)
	if len(documents) != 1 {
		return nil, fmt.Errorf("%w: %s commits no recipe", commit.ErrDamaged, p.Config.Key)
	}
	text, err := w.ReadShard(ctx, documents[0])
	if err != nil {
		return nil, err
	}
	recipe, err := recipes.ParseCommitted(documents[0].Key, text, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: committed recipe: %w", commit.ErrDamaged, err)
	}
	p.Recipe = *recipe
	return p, nil
}

// update reads the update of a shared step, and notes the ref to that of the last one.
func (p *Point) update(ctx context.Context, step int) (m schema.Manifest, err error) {
	head, _, found, err := p.record.Head(ctx, p.Run, strconv.Itoa(step))
	if err != nil {
		return m, err
	}
	made := head.Stages[schema.StageUpdate]
	if !found || len(made) == 0 {
		return m, badinput.Errorf("step: run %s has finished no step %d that has trained a policy; `ropewalk show %s` "+
			"says which it has finished", p.Run, step, p.Run)
	}
	if m, err = p.record.Read(ctx, made[0]); err != nil {
		return m, err
	}
	if m.Checkpoint == nil || len(m.Inputs) == 0 {
		return m, fmt.Errorf("%w: %s names no policy or no recipe", commit.ErrDamaged, made[0].Key)
	}
	if step == p.Step {
		p.Update = made[0]
	}
	return m, nil
}

// Resolve returns the recipe that the step was taken under, with changes: path=value.
func (p *Point) Resolve(set []string) (*recipes.Resolved, error) {
	resolved, err := recipes.ResolveCommitted(&p.Recipe, set)
	if err != nil {
		return nil, badinput.Of(err)
	}
	if n := resolved.Recipe.Steps; n <= p.Step {
		return nil, badinput.Errorf("steps: must be more than the %d steps that the fork shares, got %d", p.Step, n)
	}
	return resolved, nil
}

// sharing is how many heads are put at once.
const sharing = 16

// Share notes that a run forks off here, so that no checkpoint that it begins with is pruned, and puts the run's heads
// of the shared steps. lag is how many policies before the last one the run's first steps are sampled from. A second
// call puts what an interrupted one has not.
func (p *Point) Share(ctx context.Context, run string, lag int) error {
	note, err := schema.Canonical(schema.ForkPoint{Run: run, Step: p.Step})
	if err != nil {
		return err
	}
	err = p.record.Store().PutIfAbsent(ctx, p.ForkKey(run), note)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note that run %s forks off run %s: %w", run, p.Run, err)
	}
	for step := max(1, p.Step-lag); step <= p.Step; step++ { // what is there now stays
		if err := p.checkKept(ctx, step); err != nil {
			return errors.Join(err, p.record.Store().Delete(ctx, p.ForkKey(run)))
		}
	}
	return rescue.Each(ctx, sharing, p.Step, func(ctx context.Context, i int) error {
		head, _, found, err := p.record.Head(ctx, p.Run, strconv.Itoa(i+1))
		if err == nil && !found {
			err = fmt.Errorf("%w: run %s has no head of step %d", commit.ErrDamaged, p.Run, i+1)
		}
		if err != nil {
			return err
		}
		return p.record.ShareHead(ctx, head.SharedBy(run))
	})
}

// checkKept refuses a step whose policy was pruned.
func (p *Point) checkKept(ctx context.Context, step int) error {
	m, err := p.update(ctx, step)
	if err != nil {
		return err
	}
	pruned := m.Checkpoint.Prefix + schema.PrunedFile
	listed, err := p.record.Store().List(ctx, pruned)
	if err != nil {
		return fmt.Errorf("look for %s: %w", pruned, err)
	}
	if slices.ContainsFunc(listed, func(o store.Object) bool { return o.Key == pruned }) {
		return badinput.Errorf("step: the policy after step %d of run %s is pruned; fork the run at a step whose "+
			"checkpoint it keeps (checkpoint.every, keep_last and keep_best of its recipe)", step, p.Run)
	}
	return nil
}
