package prepare

import (
	"github.com/ropewalk/ropewalk/activities/stage"
	sizes "github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/recipes"
)

// Storable refuses a recipe whose checkpoints contain a file larger than the store can hold, before anything is
// computed.
func Storable(d *stage.Worker, r *recipes.Recipe) error {
	if r.Environment.Imported() {
		return nil // nothing is trained
	}
	shape, err := d.Recipes.Shape(r)
	if err != nil {
		return err
	}
	field, size := planning.LargestFile(r, shape)
	if limit := d.Store.MaxObject(); size > limit {
		return badinput.Errorf("%s: a checkpoint would have a file of %s (%d bytes), and an object of %s has at most "+
			"%s (%d bytes): make the model smaller, or use another store", field, planning.Size(size), size,
			d.Store, planning.Size(limit), limit)
	}
	return nil
}

// Holdable refuses a recipe whose models the CPU engine cannot hold in the machine's memory, before anything is
// computed. Devices are looked at when they are leased.
func Holdable(d *stage.Worker, r *recipes.Recipe, kind string) error {
	if !(recipes.Engine{Kind: kind}).Declaration().Shared || d.Engines.Memory == 0 || r.Environment.Imported() {
		return nil
	}
	shape, err := d.Recipes.Shape(r)
	if err != nil {
		return err
	}
	trainer, _ := d.Engines.Pool.CPU()
	text := planning.Exceeds(r, sizes.Of(shape), trainer.Describe().Threads, d.Engines.Memory)
	if text == "" {
		return nil
	}
	return badinput.Errorf("policy: %s: choose a smaller model, fewer threads, a smaller "+
		"rollout.max_tokens, or engine.kind: torch on GPUs (ropewalk run RECIPE --dry-run plans it)", text)
}
