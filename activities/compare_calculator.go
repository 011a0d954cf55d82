package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/env/gsm8k"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// CompareCalculator compares the sandbox's results with the values that the source's authors wrote.
type CompareCalculator struct{ *Deps }

// Execute counts agreement within a relative tolerance of 1e-6 over all calls; a failed call counts as disagreement.
func (a CompareCalculator) Execute(ctx context.Context, in api.AgreementInput) (api.Agreement, error) {
	out := api.Agreement{}
	s := spec{scope: in.Scope, stage: api.StageCompare, turn: -1, shard: -1, inputs: in.Tools}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		items, err := a.source(ctx, in.Source, in.Digest)
		if err != nil {
			return err
		}
		calls, err := read[schema.ToolCallRow](ctx, a.records, in.Tools...)
		if err != nil {
			return err
		}
		for _, c := range calls {
			if c.Excluded != nil {
				continue // the sandbox had no verdict to compare
			}
			written, err := annotation(items, c)
			if err != nil {
				return err
			}
			out.Compared++
			if c.Status == string(sandbox.StatusOK) && gsm8k.Agrees(c.Stdout, written) {
				out.Agreed++
			}
		}
		w.timing.Rows = int64(out.Compared)
		return nil
	})
	return out, err
}

// annotation finds the value that the source wrote after a call: a turn has at most one call.
func annotation(items []gsm8k.Item, c schema.ToolCallRow) (string, error) {
	_, group, sample, err := schema.ParseTrajectoryID(c.TrajectoryID)
	if err != nil {
		return "", err
	}
	if group >= len(items) || sample >= len(items[group].Trajectories) {
		return "", refuse(api.FailCorrupt, "call of %s: its source has no such trajectory", c.TrajectoryID)
	}
	calls := items[group].Trajectories[sample].Calls()
	if int(c.Turn) >= len(calls) {
		return "", refuse(api.FailCorrupt, "call of %s, turn %d: its source has no such annotation", c.TrajectoryID,
			c.Turn)
	}
	return calls[c.Turn].Value, nil
}
