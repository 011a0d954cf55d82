package rollout

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/tool"
)

// Tools runs the tool calls of the episodes in RunEpisodes.
type Tools struct {
	box   tool.Toolbox
	scope tool.Scope
	batch int // number of episodes that advance together
}

// Constants of an evaluation. None changes a result, because each batch is a fixed slice of the episodes and each row
// draws from its own stream.
const (
	batchEpisodes    = 256 // number of episodes that advance together
	statefulEpisodes = 64  // the same, if a tool keeps state for each episode
	parallelBatches  = 2   // one batch generates while the tools of the other run
)

// StatefulEpisodes is the number of episodes for which RunEpisodes keeps state in tools at once. A pool with this many
// places never evicts an interpreter before its episode has ended.
const StatefulEpisodes = statefulEpisodes * parallelBatches

// NewTools runs calls with the tools of a box. scope completes the keys of the calls.
func NewTools(box tool.Toolbox, scope tool.Scope) Tools {
	t := Tools{box: box, scope: scope, batch: batchEpisodes}
	if box.Stateful() {
		t.batch = statefulEpisodes
	}
	return t
}

// answer runs the pending calls of the episodes and absorbs their results. A call that breaks is an error.
func (t Tools) answer(ctx context.Context, l *Loop, episodes []*Episode) error {
	if t.box.Stateful() {
		for _, e := range episodes {
			if !l.MayCall(e) {
				if err := t.box.End(ctx, e.Key(t.scope).Episode()); err != nil {
					return err
				}
			}
		}
	}
	outcomes, _, err := l.RunCalls(ctx, t.box, t.scope, episodes, nil)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Broken != nil {
			return fmt.Errorf("run tool calls: %w", o.Broken)
		}
	}
	return l.AbsorbOutcomes(episodes, outcomes)
}
