package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// Updates that steer a live run.
const (
	UpdatePause   = "pause"
	UpdateUnpause = "unpause"
	UpdateStop    = "stop"
	UpdateSet     = "set"
	UpdateUpgrade = "upgrade"
)

// SetInput is the argument of the update set: the changes from the next step on.
type SetInput struct {
	LearningRate *float64 `json:"learning_rate,omitempty"` // optimizer.lr
	Temperature  *float64 `json:"temperature,omitempty"`   // rollout.temperature
	Steps        *int     `json:"steps,omitempty"`         // of the whole run

	invalid string
}

// UnmarshalJSON refuses unknown fields; see TrainRunInput.
func (in *SetInput) UnmarshalJSON(data []byte) error {
	type plain SetInput
	return strictJSON(data, (*plain)(in), &in.invalid)
}

// Asker says who sends an update that may change the recipe. It is the last argument of set, stop and retry, and may be
// left out: other programs need not know it.
type Asker struct {
	Actor string `json:"actor,omitempty"`
}

// TakesAsker reports whether an update has an Asker as its last argument.
func TakesAsker(update string) bool {
	return update == UpdateSet || update == UpdateStop || update == UpdateRetry
}

// set returns the changed recipe fields as path=value.
func (in SetInput) set() []string {
	var set []string
	if in.LearningRate != nil {
		set = append(set, fmt.Sprintf("optimizer.lr=%v", *in.LearningRate))
	}
	if in.Temperature != nil {
		set = append(set, fmt.Sprintf("rollout.temperature=%v", *in.Temperature))
	}
	if in.Steps != nil {
		set = append(set, fmt.Sprintf("steps=%d", *in.Steps))
	}
	return set
}

// Steered answers pause, unpause, stop, set and upgrade.
type Steered struct {
	// Step is the first step that the update affects: the run pauses before it, or it runs with the new settings or on
	// another build. For stop, Step is the last step that the run takes.
	Step int    `json:"step"`
	What string `json:"what"`
}

// steer adds the updates pause, unpause, stop, set and upgrade.
func (r *trainRun) steer(ctx workflow.Context) error {
	for _, u := range []struct {
		name        string
		handler     any
		description string
		validator   any
	}{
		{UpdatePause, r.pause, "Pause before the next step; the step that runs is finished. No argument.",
			func(workflow.Context) error {
				if r.paused {
					return badInput("pause: the run is paused already")
				}
				return r.running("pause")
			}},
		{UpdateUnpause, r.unpause, "Go on with a paused run. No argument.", func(workflow.Context) error {
			if !r.paused {
				return badInput("unpause: the run is not paused")
			}
			return nil
		}},
		{UpdateStop, r.stop, "Stop after the step that runs, with the final evaluation. No argument.",
			func(workflow.Context, Asker) error {
				return r.running("stop")
			}},
		{UpdateSet, r.set,
			"Change settings from the next step on: {\"learning_rate\": 1e-4, \"temperature\": 0.9, \"steps\": " +
				"120}, any of them. It is recorded in the run's lineage.",
			func(_ workflow.Context, in SetInput, _ Asker) error {
				if in.invalid != "" {
					return badInput("%s", in.invalid)
				}
				if len(in.set()) == 0 {
					return badInput("set: give learning_rate, temperature or steps")
				}
				if in.Steps != nil && *in.Steps < r.comingStep()-1 {
					return badInput("steps: must be ≥ %d, the step that runs, got %d", r.comingStep()-1, *in.Steps)
				}
				return r.running("set")
			}},
		{UpdateUpgrade, r.upgrade, "Go on with the current build of the workers from the next step on. No argument.",
			func(workflow.Context) error { return r.running("upgrade") }},
	} {
		options := workflow.UpdateHandlerOptions{Description: u.description, Validator: u.validator}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, u.handler, options); err != nil {
			return fmt.Errorf("register update %s: %w", u.name, err)
		}
	}
	return nil
}

// running refuses an update that comes too early or too late.
func (r *trainRun) running(what string) error {
	if r.prepared.Plan.Steps == 0 {
		return badInput("%s: the run is still being prepared; try again in a moment", what)
	}
	if r.finishing {
		return badInput("%s: the last step is done, the run is finishing", what)
	}
	return nil
}

// nextStep is the first step that has not begun.
func (r *trainRun) nextStep() int {
	if r.stepping {
		return r.next + 1
	}
	return r.next
}

// comingStep is the first step that neither has begun nor is sampled or being sampled: changed settings hold from it
// on.
func (r *trainRun) comingStep() int {
	ahead := r.ahead.next
	if r.ahead.running {
		ahead++
	}
	return max(r.nextStep(), ahead)
}

func (r *trainRun) pause(ctx workflow.Context) (Steered, error) {
	r.paused = true
	r.show(ctx)
	return Steered{Step: r.nextStep(), What: fmt.Sprintf("the run pauses before step %d", r.nextStep())}, nil
}

func (r *trainRun) unpause(ctx workflow.Context) (Steered, error) {
	r.paused = false
	r.show(ctx)
	return Steered{Step: r.nextStep(), What: fmt.Sprintf("the run goes on with step %d", r.nextStep())}, nil
}

// stop makes the current step the last one. It changes the number of steps, so that the record shows the change and a
// resume finds the run finished.
func (r *trainRun) stop(ctx workflow.Context, by Asker) (Steered, error) {
	last := max(r.comingStep()-1, 1)
	if err := r.amend(ctx, []string{fmt.Sprintf("steps=%d", last)}, false, by); err != nil {
		return Steered{}, err
	}
	r.paused = false
	r.show(ctx)
	return Steered{Step: last, What: fmt.Sprintf("the run stops after step %d, with the final evaluation", last)}, nil
}

func (r *trainRun) set(ctx workflow.Context, in SetInput, by Asker) (Steered, error) {
	if err := r.amend(ctx, in.set(), false, by); err != nil {
		return Steered{}, err
	}
	from := r.amendments[len(r.amendments)-1].From
	r.show(ctx)
	return Steered{Step: from, What: fmt.Sprintf("from step %d on: %s", from, strings.Join(in.set(), ", "))}, nil
}

// upgrade makes the run continue as new before the next step, on the build that is current then.
func (r *trainRun) upgrade(workflow.Context) (Steered, error) {
	r.handsOver = true
	return Steered{Step: r.nextStep(), What: fmt.Sprintf("from step %d on: the current build of the workers",
		r.nextStep())}, nil
}

// amendments are the changes of a run's recipe, in the order they were made.
type amendments []api.Amendment

// newest returns the recipe after the latest amendment of a run.
func (a amendments) newest(p api.Prepared) api.Amendment {
	if n := len(a); n > 0 {
		return a[n-1]
	}
	return api.Amendment{Manifest: p.Manifest, Plan: p.Plan}
}

// generation is the generation at which a step commits: 0 unless it is retried with other settings. The steps after it
// that were sampled ahead under the former settings are sampled again.
func (a amendments) generation(step int) int {
	gen := 0
	for _, one := range a {
		if one.From <= step && step <= one.From+one.Plan.Staleness {
			gen = max(gen, one.Gen)
		}
	}
	return gen
}

// at returns a run as the amendments that are in force at a step leave it.
func (a amendments) at(step int, p api.Prepared) api.Prepared {
	for _, one := range a {
		if one.From <= step {
			p.Manifest, p.Plan = one.Manifest, one.Plan
		}
	}
	return p
}

// enact applies the amendments that are in force at a step.
func (r *trainRun) enact(step int) { r.prepared = r.amendments.at(step, r.prepared) }

// await waits until nothing blocks the next step: no pending or unsettled amendment, and no pause.
func (r *trainRun) await(ctx workflow.Context) error {
	for {
		if r.unsettled != nil && r.amending == 0 {
			if err := r.settleOrPark(ctx); err != nil {
				return err
			}
		}
		if !r.paused && r.amending == 0 {
			if r.unsettled == nil {
				return nil
			}
			continue
		}
		r.later.flush(ctx)
		if r.paused {
			if err := r.settleDue(ctx); err != nil {
				return err
			}
		}
		paused := r.paused
		if paused {
			r.stage(ctx, r.next-1, StagePaused)
			r.states.enter(ctx, schema.StatePaused, "", "")
		}
		if err := workflow.Await(ctx, func() bool { return !r.paused && r.amending == 0 }); err != nil {
			return err
		}
		if paused {
			r.states.enter(ctx, schema.StateRunning, "", "")
		}
	}
}
