package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
)

// Tools is how RunEpisodes runs what episodes call.
type Tools struct {
	// results returns the results of PendingCalls, in its order. It is asked after every generation.
	results func(ctx context.Context, l *Loop, episodes []*Episode) ([]sandbox.Result, error)
	batch   int // episodes that advance together
}

// Evaluation's fixed choices: none changes a result, since each batch is a fixed slice of the
// episodes and each row draws from its own stream.
const (
	batchEpisodes    = 256 // episodes that advance together
	notebookEpisodes = 64  // the same, where each has an interpreter of its own
	parallelBatches  = 2   // so that one generates while the other's tools run
)

// NotebookEpisodes is how many interpreters RunEpisodes uses at once: with so many places in their pool, none is
// taken away before its episode has ended.
const NotebookEpisodes = notebookEpisodes * parallelBatches

// Calls runs each call by itself.
func Calls(executor sandbox.Executor) Tools {
	return Tools{batch: batchEpisodes, results: func(ctx context.Context, l *Loop, episodes []*Episode) (results []sandbox.Result, err error) {
		calls, refs := l.PendingCalls(episodes)
		if len(calls) == 0 {
			return nil, nil
		}
		err = rescue.Do(func() error {
			results, err = executor.Run(ctx, calls)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("run tool calls of %s and %d more: %w", episodes[refs[0].Episode].TrajectoryID, len(refs)-1, err)
		}
		return results, nil
	}}
}

// Notebooks runs the calls of each episode as cells of one interpreter, at most atOnce of them at a time. name
// stands before the episodes' ids in the pool.
func Notebooks(pool *session.Pool, atOnce int, name string) Tools {
	id := func(e *Episode) string { return name + "/" + e.TrajectoryID }
	return Tools{batch: notebookEpisodes, results: func(ctx context.Context, l *Loop, episodes []*Episode) ([]sandbox.Result, error) {
		for _, e := range episodes {
			if !l.MayCall(e) {
				if err := pool.End(ctx, id(e)); err != nil && !errors.Is(err, session.ErrUnknown) {
					return nil, err
				}
			}
		}
		outcomes, err := pool.RunNotebooks(ctx, l.PendingNotebooks(episodes, id), atOnce, nil)
		if err != nil {
			return nil, fmt.Errorf("run tool calls: %w", err)
		}
		var results []sandbox.Result
		for _, of := range outcomes {
			for _, o := range of {
				if o.Broken != nil {
					return nil, fmt.Errorf("run tool calls: %w", o.Broken)
				}
				results = append(results, o.Result)
			}
		}
		return results, nil
	}}
}
