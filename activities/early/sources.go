package early

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/programs"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
)

// Scorer calls a user's reward function with each trajectory when its episode ends. The function takes one trajectory
// at a time, so its results do not depend on which others have ended.
type Scorer struct {
	functions *remote.Functions
	settings  remote.FunctionSettings
	plays     bool
	scores    map[string]*earlyScore
}

// earlyScore is the function's result for a trajectory.
type earlyScore struct {
	asked string // the argument, in JSON
	remote.Scored
	earlyCall
}

// NewScorer makes a scorer. plays: the function is told what the environment paid.
func NewScorer(functions *remote.Functions, settings remote.FunctionSettings, plays bool) *Scorer {
	return &Scorer{functions: functions, settings: settings, plays: plays, scores: map[string]*earlyScore{}}
}

// beginScores begins to call the function with trajectories, one call after the other. The caller holds the lock.
func (v *Verdicts) beginScores(episodes []*rollout.Episode, rows []schema.TrajectoryRow,
	problems map[string]string) error {
	if v.failed {
		return nil
	}
	g := *v.grader
	if v.scorer.plays {
		g.Played = grading.PlayedIn(episodes)
	}
	asked, arguments := g.Arguments(rows, problems, v.scorer.settings.Module)
	for i, argument := range arguments {
		text, err := json.Marshal(argument)
		if err != nil {
			return fmt.Errorf("trajectory %s: %w", asked[i].TrajectoryID, err)
		}
		e := &earlyScore{asked: string(text), earlyCall: earlyCall{done: make(chan struct{})}}
		v.scorer.scores[asked[i].TrajectoryID] = e
		go v.score(argument, e)
	}
	return nil
}

// score calls the function once no other call of the process runs.
func (v *Verdicts) score(argument map[string]any, e *earlyScore) {
	defer close(e.done)
	v.get(schema.StageFunction, &e.earlyCall, func(ctx context.Context) error {
		got, err := v.scorer.functions.Score(ctx, v.scorer.settings, []map[string]any{argument}, func(int, int) {})
		if err == nil {
			e.Scored, err = got[0], got[0].Broken
		}
		e.made = err == nil
		return err
	})
}

// Scored waits for what has begun of the function's calls with some arguments, and returns the results that there are,
// by position, and when the first of these calls began.
func (v *Verdicts) Scored(ctx context.Context, rows []schema.FunctionScoreRow, arguments []map[string]any) (
	made map[int]remote.Scored, began time.Time, err error) {
	if v == nil || v.scorer == nil {
		return nil, began, nil
	}
	made = map[int]remote.Scored{}
	for i, r := range rows {
		v.mu.Lock()
		e := v.scorer.scores[r.TrajectoryID]
		v.mu.Unlock()
		if e == nil {
			continue
		}
		text, err := json.Marshal(arguments[i])
		if err != nil {
			return nil, began, fmt.Errorf("trajectory %s: %w", r.TrajectoryID, err)
		}
		if e.asked != string(text) {
			continue
		}
		if err := e.wait(ctx, &began); err != nil {
			return nil, began, err
		}
		if e.made {
			made[i] = e.Scored
		}
	}
	return made, began, nil
}

// Pairs that go to the sandbox before progress is reported.
const (
	batchPairs    = 512 // of expressions, some hundredths of a second each
	batchPrograms = 64
)

// GradeFunc grades pairs in a sandbox; see symbolic.Run and programs.Run.
type GradeFunc func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error)

// GradeBy returns how the pairs of a recipe are graded, and how many at most before progress is reported. tested means
// that the answers are programs.
func GradeBy(recipe *recipes.Recipe, e sandbox.Executor, tested bool) (run GradeFunc, most int) {
	if tested {
		return func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error) {
			return programs.Run(ctx, e, pairs, resource.CallLimits(recipe.Sandbox))
		}, batchPrograms
	}
	return func(ctx context.Context, pairs []symbolic.Pair) ([]symbolic.Graded, error) {
		return symbolic.Run(ctx, e, pairs)
	}, batchPairs
}
