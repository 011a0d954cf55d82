package activities

import (
	"fmt"

	"github.com/ropewalk/ropewalk/activities/api"
	sizes "github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/recipes"
)

// Bytes of one float32 number in a checkpoint: of a weight, and of AdamW's two moments for each trained number.
const (
	weightBytes  = 4
	momentsBytes = 8
)

// storable refuses a recipe whose checkpoints contain a file larger than the store can hold, before anything is
// computed.
func (d *Deps) storable(r *recipes.Recipe) error {
	if r.Environment.Imported() || r.Policy.Checkpoint != "" {
		return nil // nothing is trained, or the recipe does not determine the model's shape
	}
	field, size, err := d.largestObject(r)
	if err != nil {
		return err
	}
	if limit := d.Store.MaxObject(); size > limit {
		return refuse(api.FailBadInput,
			"%s: a checkpoint would have a file of %s (%d bytes), and an object of %s has at most "+
				"%s (%d bytes): make the model smaller, or use another store", field, gibibytes(size), size, d.Store,
			gibibytes(limit), limit)
	}
	return nil
}

// largestObject returns the size of the largest file of a run's checkpoints, without its header, and the recipe field
// that determines it. A critic has the policy's tensors plus a value head.
func (d *Deps) largestObject(r *recipes.Recipe) (field string, size int64, err error) {
	tokens, err := d.tokenizer(r)
	if err != nil {
		return "", 0, err
	}
	shape, err := PolicyShape(r.Policy, tokens)
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
	weights, moments := weightBytes*params, momentsBytes*trained
	if weights > moments {
		return "policy", weights, nil
	}
	return of, moments, nil
}

func gibibytes(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
