package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
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
var longStages = []string{schema.StageLogprobs, schema.StageUpdate}

// enter shows the current stage in the UI's details and in the search attributes.
func (p *position) enter(ctx workflow.Context, stage string) {
	if p.stage == stage {
		return
	}
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

// runner runs the stages of a step as activities, or groups of them as one activity or child workflow. It is the only
// place that knows the modes.
type runner struct {
	ctx   workflow.Context
	at    *position
	scope api.Scope
	plan  api.Plan
	home  *home
	times *timings
	quiet bool // the stages that run are not shown: several shards are at different ones
	// prefix begins the notes of the activities, where one workflow has the activities of several steps.
	prefix string
}

func newRunner(ctx workflow.Context, at *position, scope api.Scope, plan api.Plan, host string, l limits) *runner {
	return &runner{ctx: ctx, at: at, scope: scope, plan: plan, home: newHome(ctx, host, plan, l), times: &timings{}}
}

// Run implements step.Runner.
func (r *runner) Run(c step.Call, out api.Result) error {
	if err := r.activity(c.At, c.Activity, c.Note, c.In, out); err != nil {
		return err
	}
	if c.Stage != stages.Timings {
		r.times.add(out.Common().Timing)
	}
	return nil
}

// activity runs an activity where its declaration and the plan want it.
func (r *runner) activity(at step.At, name, note string, in, out any) (err error) {
	if !r.quiet {
		r.at.enter(r.ctx, at.Stage)
	}
	note = r.prefix + note
	tools := name == api.ExecuteToolCalls && r.plan.Summaries // which use the models
	switch queue := stages.ActivityOf(name).Queue; {
	case queue == stages.GPU:
		if err := r.home.open.Acquire(r.ctx, 1); err != nil {
			return err
		}
		defer r.home.open.Release(1)
		err = atHome(r.ctx, r.home, r.scope, name, note, in, out)
	case tools && r.plan.Hosts <= 1: // on the queue whose workers hold them
		o := options(r.home.limits, name, note)
		o.TaskQueue = stages.Rollout
		err = workflow.ExecuteActivity(workflow.WithActivityOptions(r.ctx, o), name, in).Get(r.ctx, out)
	case tools || queue == stages.Rollout:
		err = sample(r.ctx, r.home, r.scope, name, note, in, out)
	default:
		err = start(r.ctx, r.home.limits, name, note, in).Get(r.ctx, out)
	}
	if err != nil {
		return stageError{stage: at.Stage, shard: at.Shard, turn: at.Turn, err: err}
	}
	return nil
}

// Unit implements step.Runner: where a group of stages runs.
func (r *runner) Unit(u step.Unit) (err error) {
	switch {
	case u.Group == api.UpdateAndPublish && r.plan.Finish, u.Group != api.UpdateAndPublish && r.plan.Interleaved:
		u.In.Carried().Timeouts = r.home.limits
		err = r.activity(u.At, u.Group, u.Note, u.In, u.Out)
	case u.Group == api.RunEpisodes && !fewActivities(r.plan):
		r.at.enter(r.ctx, u.Stage)
		err = r.shardWorkflow(u.In.(*api.EpisodesInput), u.Out.(*api.Episodes))
	default:
		here := *r
		if u.Shard >= 0 {
			r.at.enter(r.ctx, u.Stage)
			here.quiet = true
		}
		return u.Body(&here)
	}
	spent := u.Out.Measured()
	r.times.add(spent.Timings...)
	r.times.elsewhere(spent.Busy)
	*spent = api.Spent{}
	return err
}

// Each implements step.Runner.
func (r *runner) Each(n int, f func(step.Runner, int) error) error {
	times := make([]timings, n)
	err := each(r.ctx, openShards, n, func(ctx workflow.Context, i int) error {
		one := *r
		one.ctx, one.times = ctx, &times[i]
		return f(&one, i)
	})
	for _, t := range times {
		r.times.add(t.all...)
		r.times.recorded = append(r.times.recorded, t.recorded...)
	}
	return err
}

// each calls f for 0…n−1, at most `most` calls at a time, and waits for all.
func each(ctx workflow.Context, most int64, n int, f func(ctx workflow.Context, i int) error) error {
	failures := make([]error, n)
	open, group := workflow.NewSemaphore(ctx, most), workflow.NewWaitGroup(ctx)
	for i := range n {
		if failures[i] = open.Acquire(ctx, 1); failures[i] != nil {
			break
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			defer open.Release(1)
			failures[i] = f(ctx, i)
		})
	}
	group.Wait(ctx)
	return errors.Join(failures...)
}

// Aside implements step.Runner.
func (r *runner) Aside(f func(step.Runner) error) (wait func() error) {
	done, set := workflow.NewFuture(r.ctx)
	workflow.Go(r.ctx, func(ctx workflow.Context) {
		one := *r
		one.ctx, one.times, one.quiet = ctx, &timings{}, true
		set.SetError(f(&one))
	})
	return func() error { return done.Get(r.ctx, nil) }
}

// Spent implements step.Runner.
func (r *runner) Spent() (out []api.Timing) {
	out, r.times.all = r.times.all, nil
	return out
}

// shardWorkflow runs a shard as a child workflow.
func (r *runner) shardWorkflow(in *api.EpisodesInput, out *api.Episodes) error {
	in.Timeouts = r.home.limits
	err := r.shardAtHome(*in, out)
	if err == nil || saysItself(err) || r.ctx.Err() != nil {
		return err
	}
	// Any other error, such as a workflow that a person terminated, is a failure of the shard's rollout.
	var child *temporal.ChildWorkflowExecutionError
	if temporal.IsCanceledError(err) { // by a person and not with the step: the step fails and can be retried
		err = errors.New("the shard's workflow was cancelled")
	} else if errors.As(err, &child) && child.Unwrap() != nil {
		err = child.Unwrap()
	}
	return stageError{stage: schema.StageRollout, shard: in.Shard, turn: -1, err: err}
}

// shardAtHome runs a shard on the host that holds the run's models. If several hosts share the models and their
// leader is gone, the shard starts again on another host and adopts what it has committed.
func (r *runner) shardAtHome(in api.EpisodesInput, out *api.Episodes) error {
	for {
		if err := r.home.find(r.ctx, r.scope); err != nil {
			return err
		}
		if in.Hosts > 1 {
			in.Home = r.home.host
		}
		err := child(shardOptions(r.ctx, in), RolloutShard, in, out)
		if in.Hosts <= 1 || !left(err) {
			return err
		}
		if r.home.host == in.Home { // only the first of several concurrent shards that notice resets the home
			r.home.host = ""
		}
	}
}
