package data

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// SolvedProblems returns the problems that all samples of the run's earlier steps have solved, if there are at least
// samples samples; for 0 it returns none. The manifests read for this become inputs of the manifest.
func (a SelectPrompts) SolvedProblems(ctx context.Context, w *stage.Draft, scope api.Scope,
	samples int) (map[string]bool, error) {
	if samples == 0 {
		return nil, nil
	}
	l := a.ledgers.Get(scope.Run, func() *ledger { return &ledger{all: prompts.Outcomes{}} })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.through >= scope.Step { // the step runs again after later ones
		l = &ledger{all: prompts.Outcomes{}}
	}
	if err := extend(ctx, a.Worker.Records, l, scope, w.Progress.Set); err != nil {
		return nil, err
	}
	w.Manifest.Inputs = append(w.Manifest.Inputs, l.inputs...)
	return l.all.Solved(samples)
}

// ledger sums the outcomes of a run's steps, so that a worker reads each step of the run only once. Heads do not
// change, so the sum does not change either.
type ledger struct {
	mu      sync.Mutex
	through int // the last step that is included
	all     prompts.Outcomes
	inputs  []schema.Ref // the manifests that were read, in the order of steps
}

// ledgersKept bounds the runs whose ledgers a worker remembers; a ledger grows with the number of distinct problems.
const ledgersKept = 8

// stepsAtOnce is how many steps are read concurrently.
const stepsAtOnce = 8

// extend adds the steps before the scope's, several at once. Steps that were added stay, even if a later step cannot
// be read.
func extend(ctx context.Context, r record.Records, l *ledger, scope api.Scope, report func(done, total int)) error {
	for l.through+1 < scope.Step {
		steps := make([]stepOutcomes, min(stepsAtOnce, scope.Step-1-l.through))
		g, ctx := rescue.WithContext(ctx)
		for i := range steps {
			g.Go(func() (err error) {
				steps[i], err = readOutcomes(ctx, r, scope, l.through+1+i)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, s := range steps {
			l.all.Add(s.of)
			l.inputs = append(l.inputs, s.inputs...)
		}
		l.through += len(steps)
		report(l.through, scope.Step-1)
	}
	return nil
}

// stepOutcomes are the outcomes of one step, and the manifests that they were read from.
type stepOutcomes struct {
	of     prompts.Outcomes
	inputs []schema.Ref
}

func readOutcomes(ctx context.Context, r record.Records, scope api.Scope, step int) (stepOutcomes, error) {
	head, _, found, err := r.Record.Head(ctx, scope.Run, strconv.Itoa(step))
	if err != nil {
		return stepOutcomes{}, err
	}
	asked, rewards := head.Stages[schema.StagePrompts], head.Stages[schema.StageReward]
	if !found || len(asked) == 0 || len(rewards) == 0 {
		return stepOutcomes{},
			refusal.Corruptf("schedule.stages: step %d of run %s has committed no rewards, by which step %d tells "+
				"what is solved", step, scope.Run, scope.Step)
	}
	of, err := outcomesOf(ctx, r, asked, rewards)
	return stepOutcomes{of, slices.Concat(asked, rewards)}, err
}

// outcomesOf counts the samples of a step by the manifests of its prompts and rewards.
func outcomesOf(ctx context.Context, r record.Records, asked, rewards []schema.Ref) (prompts.Outcomes, error) {
	promptRows, err := record.Read[schema.PromptRow](ctx, r, asked...)
	if err != nil {
		return nil, err
	}
	rewardRows, err := record.Read[schema.RewardRow](ctx, r, rewards...)
	if err != nil {
		return nil, err
	}
	of, err := prompts.Count(promptRows, rewardRows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rewards[0].Key, err)
	}
	return of, nil
}
