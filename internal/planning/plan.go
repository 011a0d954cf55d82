package planning

import (
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/recipes"
)

// Input is what a plan follows from.
type Input struct {
	Recipe *recipes.Recipe
	// Kind is the name of the kind of engine that runs the models.
	Kind string
	// Model holds the sizes of the policy; nil if they are not known before the run is prepared.
	Model *plan.Model
	// ModelSource says where the sizes are from, or why they are not known.
	ModelSource string
	Inventory   plan.Inventory
	Assumed     plan.Assumed
	Threads     int // of the CPU engine
}

// Plan is what a run takes. Bytes and seconds are estimates.
type Plan struct {
	Engine    string         `json:"engine"`
	Model     Model          `json:"model"`
	Inventory plan.Inventory `json:"inventory"`
	Assumed   plan.Assumed   `json:"assumed"`
	Processes []Process      `json:"processes"`
	// Placement has an entry for each device of the inventory that something is placed on.
	Placement []Placed `json:"placement"`
	// Memory is what one device of the engine holds; on the CPU engine, the worker. nil if the model is not known.
	Memory *EngineMemory `json:"engine_memory"`
	Step   *Step         `json:"step"`
	Writes *Writes       `json:"writes"`
	// Refused says what does not fit the inventory, and what would.
	Refused []string `json:"refused"`
	// Notes say what the plan does not cover, or could not find out.
	Notes []string `json:"notes"`
}

// Model is the policy.
type Model struct {
	Checkpoint string `json:"checkpoint,omitempty"` // "" = made here
	Params     int64  `json:"params,omitempty"`     // 0 = unknown
	Source     string `json:"source"`
}

// Make plans a run.
func Make(in Input) Plan {
	r := in.Recipe
	out := Plan{Engine: in.Kind, Model: Model{Checkpoint: r.Policy.Checkpoint, Source: in.ModelSource},
		Inventory: in.Inventory, Assumed: in.Assumed, Placement: []Placed{}, Refused: []string{}, Notes: []string{}}
	p := placing{Input: in, plan: &out}
	switch {
	case engines.Named(in.Kind).Remote:
		out.note("a server at %s trains; what it takes there, and how long, is not planned", r.Engine.Tinker.Name())
		if in.Model != nil {
			out.Model.Params = in.Model.Params
		}
	case in.Model != nil:
		out.Model.Params = in.Model.Params
		out.Memory = new(engineMemory(r, *in.Model, in.Kind, in.Threads))
	default:
		out.note("the sizes of the model are not known: %s. Memory, times and bytes are left out", in.ModelSource)
	}
	p.place()
	out.Processes = processes(in, p.served)
	if in.Model != nil {
		out.Step = stepOf(in, &out, p)
		out.Writes = new(writes(r, *in.Model))
	}
	return out
}
