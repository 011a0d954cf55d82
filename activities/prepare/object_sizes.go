package prepare

import (
	"fmt"

	"github.com/ropewalk/ropewalk/activities/stage"
	sizes "github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/recipes"
)

// weightBytes are the bytes of one number in a checkpoint: of a weight, or of a state of the optimiser.
const weightBytes = 4

// Storable refuses a recipe whose checkpoints contain a file larger than the store can hold, before anything is
// computed.
func Storable(d *stage.Worker, r *recipes.Recipe) error {
	if r.Environment.Imported() {
		return nil // nothing is trained
	}
	field, size, err := LargestObject(d, r)
	if err != nil {
		return err
	}
	if limit := d.Store.MaxObject(); size > limit {
		return badinput.Errorf("%s: a checkpoint would have a file of %s (%d bytes), and an object of %s has at most "+
			"%s (%d bytes): make the model smaller, or use another store", field, gibibytes(size), size, d.Store,
			gibibytes(limit), limit)
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

// LargestObject returns the size of the largest file of a run's checkpoints, without its header, and the recipe field
// that determines it. A critic has the policy's tensors plus a value head.
func LargestObject(d *stage.Worker, r *recipes.Recipe) (field string, size int64, err error) {
	shape, err := d.Recipes.Shape(r)
	if err != nil {
		return "", 0, err
	}
	shape.ValueHead = r.Loss.Value() != nil
	params := shape.Params()
	trained, of := params, "policy"
	if lora := r.Engine.LoRA; lora != nil {
		trained = sizes.Of(shape).AdapterParams(sizes.Adapter{Rank: lora.Rank, Targets: lora.Targets})
		of = "engine.lora"
	}
	weights, states := weightBytes*params, weightBytes*int64(r.Optimizer.States())*trained
	if weights > states {
		return "policy", weights, nil
	}
	return of, states, nil
}

func gibibytes(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
