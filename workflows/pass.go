package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// position is the stage that a step or an import is at.
type position struct {
	run   string
	step  int
	stage string
	// longOnly changes the search attribute at longStages alone. Each change costs the server a transaction, which
	// delays the activity that is scheduled next.
	longOnly bool
	// shown shows the stage in the details of a run that takes the step itself; nil: the step's own details show it.
	shown func(ctx workflow.Context, stage string)
}

// longStages are what a step's search attribute names. It is StageRollout from the start on, and names the stage that
// failed in any case.
var longStages = []string{api.StageLogprobs, api.StageUpdate}

// enter shows the current stage in the UI's details and in the search attributes.
func (p *position) enter(ctx workflow.Context, stage string) {
	p.stage = stage
	if p.shown != nil {
		p.shown(ctx, stage)
	} else {
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d · %s", p.run, p.step, stage))
	}
	if p.longOnly && !slices.Contains(longStages, stage) {
		return
	}
	// Upserting fails only for keys that cannot be encoded; these are constants.
	_ = workflow.UpsertTypedSearchAttributes(ctx, attrStage.ValueSet(stage))
}

// pass is what a training step and an import have in common: each goes through the stages of one step once, under a
// prepared recipe.
type pass struct {
	*position
	scope  api.Scope
	plan   api.Plan
	stages []api.StageRef // committed stage manifests, in stage order
	times  timings
}

func newPass(at *position, prepared api.Prepared) pass {
	return pass{position: at, scope: scoped(at.run, at.step, prepared), plan: prepared.Plan}
}

// add adds a stage that is committed.
func (p *pass) add(stage string, ref schema.Ref) {
	p.stages = append(p.stages, api.StageRef{Stage: stage, Ref: ref})
}

// finish adds a stage that is committed, and its measured time.
func (p *pass) finish(stage string, ref schema.Ref, t api.Timing) {
	p.add(stage, ref)
	p.times.add(t)
}

// commitShards commits the stage manifests of all sharded stages.
func (p *pass) commitShards(ctx workflow.Context, in api.CommitInput) (api.Rollout, error) {
	p.enter(ctx, api.StageReward)
	committed, timing, err := commitStages(ctx, in)
	if err != nil {
		return api.Rollout{}, err
	}
	p.stages = append(p.stages, committed...)
	p.times.add(timing)
	return api.RolledOut(committed), nil
}

// resample runs the stage resample over its sources.
func (p *pass) resample(ctx workflow.Context, made *sources) (api.Resampled, error) {
	p.enter(ctx, api.StageResample)
	out, err := made.resample(ctx)
	if err == nil {
		p.finish(api.StageResample, out.Manifest, out.Timing)
	}
	return out, err
}

// advantage runs the stage advantage over its sources.
func (p *pass) advantage(ctx workflow.Context, made *sources) (api.Advantages, error) {
	p.enter(ctx, api.StageAdvantage)
	out, err := made.advantage(ctx)
	if err == nil {
		p.finish(api.StageAdvantage, out.Manifest, out.Timing)
	}
	return out, err
}
