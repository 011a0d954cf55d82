package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// maxAmendments keeps the state that continue-as-new carries within its size limit.
const maxAmendments = 50

// amend commits a changed recipe. The change takes effect at the next step. After a retry it takes effect at the
// retried step, whose rollout then runs again under a new generation. Amendments run one at a time, and the run waits
// for a pending amendment before it begins a step. The record says who asked.
func (r *trainRun) amend(ctx workflow.Context, set []string, retried bool, by Asker) error {
	r.amending++
	defer func() { r.amending-- }()
	if err := r.turn.Lock(ctx); err != nil {
		return err
	}
	defer r.turn.Unlock()
	if _, err := r.settle(ctx, nil); err != nil {
		_, text := failure(err)
		return badInput("an earlier change of the settings is in doubt: %s; try again", text)
	}
	if len(r.amendments) == maxAmendments {
		return badInput("the run's settings were changed %d times; more would outgrow its history", maxAmendments)
	}
	in := api.AmendInput{Run: r.run, Config: r.amendments.newest(r.prepared).Manifest, From: r.comingStep(), Set: set}
	switch {
	case retried:
		in.From, in.Rerun = r.next, true
	case !r.begun && r.next == 1 && r.parking.parked != nil: // a resumed run reads it before the first step, too
		in.From = 0
	}
	if by.Actor != "" {
		in.Actor, in.At = by.Actor, workflow.Now(ctx).UnixMicro()
	}
	return r.commitAmendment(ctx, in)
}

// commitAmendment commits an amendment under the next free number. If all attempts fail, one of them may still have
// committed the amendment, so the run checks the record before it reports that nothing changed.
func (r *trainRun) commitAmendment(ctx workflow.Context, in api.AmendInput) error {
	for {
		in.Number = r.number
		out, err := call[api.Amended](ctx, nil, api.AmendRecipe, fmt.Sprint(in.Set), in)
		switch {
		case err != nil:
			return r.afterFailure(ctx, in, err)
		case out.Taken: // by something that this run does not know about
			r.number++
		default:
			r.take(in, out.Amendment)
			return nil
		}
	}
}

// afterFailure settles an amendment whose attempts have all failed. An amendment that was refused needs no settling:
// no attempt has committed it.
func (r *trainRun) afterFailure(ctx workflow.Context, in api.AmendInput, cause error) error {
	kind, text := failure(cause)
	if kind == api.FailBadInput {
		return badInput("%s", text)
	}
	r.unsettled = &in
	held, err := r.settle(ctx, nil)
	switch {
	case err != nil:
		return badInput("%s; it is in doubt whether the change holds: the run finds out before its next step", text)
	case !held:
		return badInput("%s; nothing is changed", text)
	}
	return nil
}

// settle checks whether the unsettled amendment was committed. held reports that it was; the run then adopts it.
func (r *trainRun) settle(ctx workflow.Context, l limits) (held bool, err error) {
	if r.unsettled == nil {
		return false, nil
	}
	in := *r.unsettled
	in.Settle = true
	out, err := call[api.Amended](ctx, l, api.AmendRecipe, "is it committed: "+fmt.Sprint(in.Set), in)
	if err != nil {
		return false, err
	}
	r.unsettled = nil
	if out.Void || out.Taken {
		r.number = in.Number + 1
		return false, nil
	}
	r.take(in, out.Amendment)
	return true, nil
}

// settleOrPark settles the open amendment before the next step. If that fails, the run parks.
func (r *trainRun) settleOrPark(ctx workflow.Context) error {
	r.stage(ctx, r.next-1, schema.StageAmend)
	return r.attempt(ctx, mandatory("the run must know which settings hold"), r.settleInTurn)
}

// settleInTurn is settle for callers that do not hold the lock r.turn.
func (r *trainRun) settleInTurn(ctx workflow.Context) error {
	if r.unsettled == nil {
		return nil
	}
	if err := r.turn.Lock(ctx); err != nil {
		return err
	}
	defer r.turn.Unlock()
	_, err := r.settle(ctx, r.limits)
	return err
}

// take adds a committed amendment to the run's list.
func (r *trainRun) take(in api.AmendInput, made api.Amendment) {
	r.number = in.Number + 1
	r.amendments = append(r.amendments, made)
	r.progress.Steps = made.Plan.Steps
	when := "before the first step"
	if in.From > 0 {
		when = fmt.Sprintf("from step %d on", in.From)
	}
	r.progress.changed(when + ": " + strings.Join(in.Set, ", "))
}
