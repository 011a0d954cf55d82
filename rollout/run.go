package rollout

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
)

// RunEpisodes drives every episode to its end with the policy of the given version. If progress is not nil, RunEpisodes
// calls it with the number of finished episodes. The calls may come from several goroutines but never overlap. An error
// means that the engine or a tool failed, or the environment on every episode of a batch. The episodes are then
// unusable. An episode that the environment breaks on is excluded: it has no outcome, and the caller must not count it
// as one.
func (l *Loop) RunEpisodes(ctx context.Context, sampler policy.Sampler, tools Tools, version string,
	episodes []*Episode, progress func(done, total int)) error {
	report := progressCounter(len(episodes), progress)
	batches := slices.Collect(slices.Chunk(episodes, tools.batch))
	return rescue.Each(ctx, parallelBatches, len(batches), func(ctx context.Context, i int) error {
		return l.runBatch(ctx, sampler, tools, version, batches[i], report)
	})
}

// progressCounter returns a function that adds finished episodes to the count and reports it.
func progressCounter(total int, progress func(done, total int)) func(finished int) {
	var mu sync.Mutex
	done := 0
	return func(finished int) {
		mu.Lock()
		defer mu.Unlock()
		done += finished
		if progress != nil && finished > 0 {
			progress(done, total)
		}
	}
}

func (l *Loop) runBatch(ctx context.Context, sampler policy.Sampler, tools Tools, version string,
	batch []*Episode, report func(finished int)) error {
	open := active(batch)
	report(len(batch) - open)
	for open > 0 {
		if err := l.advance(ctx, sampler, tools, version, batch); err != nil {
			return err
		}
		left := active(batch)
		report(open - left)
		open = left
	}
	return nil
}

// advance takes one turn: the responses, then the results of their calls.
func (l *Loop) advance(ctx context.Context, sampler policy.Sampler, tools Tools, version string,
	batch []*Episode) error {
	if req, rows := l.NextRequest(batch); len(rows) > 0 {
		generated, err := generate(ctx, sampler, req)
		if err != nil {
			return fmt.Errorf("generate responses of %s and %d more: %w", batch[rows[0]].TrajectoryID, len(rows)-1, err)
		}
		if err := l.checkAnswers(req, generated); err != nil {
			return err
		}
		if err := l.Absorb(ctx, batch, rows, generated, version); err != nil {
			return err
		}
	}
	if l.settings.Environment != nil {
		return l.Step(ctx, batch)
	}
	return tools.answer(ctx, l, batch)
}

// active counts the episodes that have not finished.
func active(episodes []*Episode) int {
	n := 0
	for _, e := range episodes {
		if e.Finish == "" {
			n++
		}
	}
	return n
}
