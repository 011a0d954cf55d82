package verdict

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// Source is a stage that gets verdicts on the answers of a shard before they are scored. The reward reads the
// committed verdicts, so the reward stays a function of the record, and a replay of it gets no new ones.
type Source interface {
	// Stage names the stage.
	Stage() string
	// Asked reports whether a recipe's reward reads the verdicts.
	Asked(r *recipes.Recipe) bool
	// NeedsProblems reports whether the questions hold the problems, which the prompts tell.
	NeedsProblems() bool
	// Ask gets the verdicts on answers, counts them in out, and puts their rows.
	Ask(ctx context.Context, w *stage.Draft, q *Questions, out *api.Verdicts) error
	// Settle gives the grader the committed verdicts, or excludes trajectories.
	Settle(ctx context.Context, g *grading.Grader, made schema.Ref, trajectories []schema.TrajectoryRow) error
	// Missing refuses a replay of the reward of a step without such verdicts; it takes the step and the run. "": a
	// replay can get them itself.
	Missing() string
}

// All lists the stages that get verdicts, in their order.
var All = []func(*stage.Worker) Source{
	func(w *stage.Worker) Source { return GradeAnswers{w} },
	func(w *stage.Worker) Source { return JudgeAnswers{w} },
	func(w *stage.Worker) Source { return CallFunction{w} },
}

// Questions are the answers of a shard that verdicts are asked for.
type Questions struct {
	api.VerdictInput
	Answers  []schema.TrajectoryRow
	Problems map[string]string // by group, if the questions hold them
}

// Answer runs a stage that gets verdicts.
func Answer(ctx context.Context, d *stage.Worker, e *stage.Env, v Source, in api.VerdictInput) (out api.Verdicts,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: v.Stage(), Turn: -1, Shard: in.Shard, Inputs: []schema.Ref{in.Trajectories}}
	if v.NeedsProblems() {
		s.Inputs = append(s.Inputs, in.Prompts)
	}
	err = stage.Execute(ctx, d, e, s, &out, func(ctx context.Context, w *stage.Draft) (err error) {
		q := &Questions{VerdictInput: in}
		if q.Answers, err = record.Read[schema.TrajectoryRow](ctx, d.Records, in.Trajectories); err != nil {
			return err
		}
		if v.NeedsProblems() {
			if q.Problems, err = problems(ctx, d.Records, in.Prompts); err != nil {
				return err
			}
		}
		if err := v.Ask(ctx, w, q, &out); err != nil {
			return err
		}
		w.Timing.Rows = int64(out.Asked)
		return nil
	})
	return out, err
}

// grader makes what grades a shard's trajectories. In an interactive environment it knows what their actions led to,
// and the manifests that say so become inputs.
func grader(ctx context.Context, w *stage.Draft, step int, trajectories schema.Ref) (*grading.Grader, error) {
	g := grading.New(w.Recipe, step)
	if !w.Recipe.Environment.Declaration().Interactive {
		return g, nil
	}
	transitions, made, err := w.Worker.Records.Transitions(ctx, trajectories)
	if err != nil {
		return nil, err
	}
	g.Played = grading.Played(transitions)
	w.Manifest.Inputs = append(w.Manifest.Inputs, made...)
	return g, nil
}

// problems returns the problem of each group.
func problems(ctx context.Context, r record.Records, prompts schema.Ref) (map[string]string, error) {
	rows, err := record.Read[schema.PromptRow](ctx, r, prompts)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(rows))
	for _, p := range rows {
		out[p.GroupID] = p.Problem
	}
	return out, nil
}
