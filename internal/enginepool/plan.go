package enginepool

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/recipes"
)

// Plan is the engine that a worker on this machine would use for a recipe. A worker elsewhere can choose another.
type Plan struct {
	Kind string `json:"kind"`
	Why  string `json:"why,omitempty"`
	// Memory estimates what an update takes on each GPU; nil if the model's sizes are not known here.
	Memory *plan.Memory `json:"memory,omitempty"`
	// WarmStart estimates what the warm start takes before an adapter trains; nil if it takes no more than an update.
	WarmStart *plan.Memory `json:"warm_start_memory,omitempty"`
	// Refused says why no worker on this machine could run the recipe.
	Refused string `json:"refused,omitempty"`
}

// String describes the plan in one line, or two where memory is estimated.
func (e Plan) String() string {
	text := e.Kind
	if e.Why != "" {
		text += ": " + e.Why
	}
	if e.Refused != "" {
		text += ": cannot run here: " + e.Refused
	}
	if e.Memory != nil {
		text += fmt.Sprintf("\nmemory on GPUs, by estimate: an update takes %s", e.Memory)
	}
	if e.WarmStart != nil {
		text += fmt.Sprintf("; the warm start, which trains the whole model, %s", e.WarmStart)
	}
	return text
}

// PlanHere chooses a recipe's engine as a worker on this machine would. state is the folder of the program's state,
// models the folder of models.
func PlanHere(ctx context.Context, r *recipes.Recipe, state, models string) (Plan, error) {
	out, kind := Plan{Kind: r.Engine.Kind}, r.Engine.Declaration()
	switch {
	case r.Environment.Imported():
		return out, nil
	case kind.Remote:
		out.Why = fmt.Sprintf("%s trains %s; it is asked when the run is prepared", r.Engine.Tinker.Name(),
			r.Engine.Tinker.BaseModel)
		return out, nil
	case kind.Name != engines.Auto && !kind.Devices:
		return out, nil
	}
	model, _, err := planning.ModelHere(r, models)
	if err != nil {
		return out, err
	}
	if model != nil {
		memory := planning.Update(r, *model, planning.BatchTokens(r))
		out.Memory = &memory
		if whole := r.WithoutAdapter(); whole != r && r.Clones() {
			warm := planning.Update(whole, *model, planning.BatchTokens(r))
			out.WarmStart = &warm
		}
	}
	m, err := OpenMaker(MakerOptions{State: state, Gangs: plannedGangs()})
	if err != nil {
		return out, err
	}
	defer m.Close()
	choice, err := New(Options{Torch: m}).Choose(ctx, r)
	if err != nil {
		out.Refused = err.Error()
		return out, nil
	}
	out.Kind, out.Why = choice.Kind, choice.Why
	return out, nil
}

// plannedGangs stands in for a worker's gangs: planning asks no other host.
func plannedGangs() Gangs {
	return Gangs{Summon: func(context.Context, gang.Invitation, int) (func(), error) {
		return nil, errors.New("no worker runs here")
	}}
}
