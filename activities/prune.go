package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Pruned is the note beside a pruned checkpoint's place: its manifest stays and says what it was.
type Pruned struct {
	Checkpoint schema.Checkpoint `json:"checkpoint"`
	Why        string            `json:"why"`
}

// prune deletes checkpoints of steps before the latest keep_last that are neither an every-th
// step's nor among the keep_best evaluated. A step whose update changed nothing has its
// predecessor's checkpoint, which is kept as long as any such step is; so is the one that is the next
// step's reference. The note is put first, so
// that what is half deleted is known to be pruned. It returns the steps that it pruned now.
func (d *Deps) prune(ctx context.Context, scope wire.Scope, recipe *recipes.Recipe) ([]int, error) {
	keep, reference := recipe.Checkpoint, recipe.ReferenceStep(scope.Step+1)
	present, err := d.checkpointSteps(ctx, scope.Run)
	if err != nil {
		return nil, err
	}
	present = slices.DeleteFunc(present, func(step int) bool { return bySchedule(step, scope.Step, keep) })
	if len(present) == 0 {
		return nil, nil
	}
	best, err := d.bestSteps(ctx, scope.Run, keep.KeepBest)
	if err != nil {
		return nil, err
	}
	kept := func(step int) bool {
		return bySchedule(step, scope.Step, keep) || slices.Contains(best, step) || step == reference
	}
	var pruned []int
	for _, step := range present {
		needed, err := d.needed(ctx, scope, step, kept)
		if err != nil {
			return pruned, err
		}
		if needed {
			continue
		}
		if err := d.pruneStep(ctx, scope, step); err != nil {
			return pruned, err
		}
		pruned = append(pruned, step)
	}
	return pruned, nil
}

// bySchedule reports that a step's checkpoint is kept whatever its evaluation said, once the run
// has come to step now.
func bySchedule(step, now int, keep recipes.Checkpoint) bool {
	return step > now-max(1, keep.KeepLast) || (keep.Every > 0 && step%keep.Every == 0)
}

// needed reports that a step is kept, or one after it whose checkpoint is still that step's.
func (d *Deps) needed(ctx context.Context, scope wire.Scope, step int, kept func(step int) bool) (bool, error) {
	prefix := ""
	for s := step; s <= scope.Step; s++ {
		m, _, found, err := d.updateOf(ctx, scope.Run, s)
		if err != nil {
			return false, err
		}
		if s == step && found && m.Checkpoint != nil {
			prefix = m.Checkpoint.Prefix
		}
		if !found || m.Checkpoint == nil || m.Checkpoint.Prefix != prefix {
			return false, nil
		}
		if kept(s) {
			return true, nil
		}
	}
	return false, nil
}

// checkpointSteps lists the steps whose checkpoints have files.
func (d *Deps) checkpointSteps(ctx context.Context, run string) ([]int, error) {
	prefix := schema.RunPrefix(run) + "checkpoints/"
	objects, err := d.Store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, o := range objects {
		version, file, _ := strings.Cut(strings.TrimPrefix(o.Key, prefix), "/")
		number, _, _ := strings.Cut(version, "-")
		step, err := strconv.Atoi(number)
		if err != nil || file == schema.PrunedFile || step == 0 { // the first critic stays, as its policy does
			continue
		}
		if len(steps) == 0 || steps[len(steps)-1] != step {
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// pruneStep deletes the files of one step's checkpoint, and of its critic's. A checkpoint that no manifest names was
// left by an attempt that lost; it is an orphan and not this function's business.
func (d *Deps) pruneStep(ctx context.Context, scope wire.Scope, step int) error {
	m, _, found, err := d.updateOf(ctx, scope.Run, step)
	if err != nil || !found {
		return err
	}
	for _, c := range m.Checkpoints() {
		if err := d.pruneCheckpoint(ctx, *c); err != nil {
			return err
		}
	}
	return nil
}

func (d *Deps) pruneCheckpoint(ctx context.Context, c schema.Checkpoint) error {
	note, err := schema.Canonical(Pruned{Checkpoint: c, Why: "neither every, keep_last nor keep_best of the recipe's checkpoint section keeps it"})
	if err != nil {
		return err
	}
	if err := d.Store.PutIfAbsent(ctx, c.Prefix+schema.PrunedFile, note); err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note that checkpoint %s is pruned: %w", c.Prefix, err)
	}
	for _, f := range c.Files {
		if f.At != "" {
			continue // another checkpoint's
		}
		if err := d.Store.Delete(ctx, c.Prefix+f.Name); err != nil {
			return fmt.Errorf("prune %s%s: %w", c.Prefix, f.Name, err)
		}
	}
	return nil
}

// bestSteps returns the steps of the n best evaluations so far; the later of equals is better.
func (d *Deps) bestSteps(ctx context.Context, run string, n int) ([]int, error) {
	objects, err := d.Store.List(ctx, schema.ManifestsPrefix(run))
	if err != nil {
		return nil, err
	}
	type scored struct {
		step    int
		success float64
	}
	all := []scored{}
	for _, o := range objects {
		place, err := schema.ParseManifestKey(o.Key)
		step, numbered := place.StepNumber()
		if err != nil || !numbered || place.Stage != wire.StageEvaluate {
			continue
		}
		m, _, found, err := d.Record.Lookup(ctx, place)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, scored{step, m.Stats[statSuccess]})
		}
	}
	slices.SortFunc(all, func(x, y scored) int {
		return cmp.Or(cmp.Compare(y.success, x.success), cmp.Compare(y.step, x.step))
	})
	steps := []int{}
	for _, s := range all[:min(n, len(all))] {
		steps = append(steps, s.step)
	}
	return steps, nil
}
