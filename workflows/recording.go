package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// recording is the recording of a step's measured times while it runs.
type recording struct {
	in     api.RecordTimingsInput
	future workflow.Future // nil: the recording waits for the next step
	done   bool
}

// start begins the recording. Only the end of the run waits for it.
func (o *recording) start(ctx workflow.Context) {
	o.future = start(ctx, nil, api.RecordTimings, "measured times", o.in)
	workflow.Go(ctx, func(ctx workflow.Context) { o.done = o.future.Get(ctx, nil) == nil })
}

// recordings record measured times alongside the next steps. Only the end of the run waits for them.
type recordings []*recording

func (l *recordings) start(ctx workflow.Context, in api.RecordTimingsInput) {
	one := &recording{in: in}
	*l = append(*l, one)
	one.start(ctx)
}

// unrecorded returns the measured times that are not recorded yet. It answers a query: the workflow that goes on with a
// run that was ended records what that run knew, and no one else does.
func (l *recordings) unrecorded() ([]api.RecordTimingsInput, error) {
	out := []api.RecordTimingsInput{}
	for _, one := range *l {
		if !one.done {
			out = append(out, one.in)
		}
	}
	return out, nil
}

// makeUp records the measured times of finished steps and merges their shards if the run was ended before it did so.
// Of times that its last execution did not know, the record notes that they are lost.
func (r *trainRun) makeUp(ctx workflow.Context) {
	untimed, uncompacted := r.prepared.Untimed, r.prepared.Uncompacted
	r.prepared.Untimed, r.prepared.Uncompacted = nil, nil
	for _, in := range r.in.Unrecorded {
		if in.Step >= r.next {
			continue // its step is not done, and is taken again
		}
		r.recordings.start(ctx, in)
		if in.Part == "step" {
			untimed = slices.DeleteFunc(untimed, func(step int) bool { return step == in.Step })
		}
	}
	for _, step := range untimed {
		in := r.timesOf(step, "step")
		in.Lost = true
		r.recordings.start(ctx, in)
	}
	r.compactions.start(ctx, r.run, r.prepared, r.recordings, uncompacted...)
}

func (r *trainRun) timesOf(step int, part string, timings ...api.Timing) api.RecordTimingsInput {
	return api.RecordTimingsInput{Scope: scoped(r.run, step, r.prepared), Timings: timings, Part: part}
}

// superseded reports whether a recording that is done says that another build is current. It waits for none: what the
// times of the last step say holds before the step after the next one.
func (l *recordings) superseded(ctx workflow.Context) (out bool) {
	for _, one := range *l {
		if one.future == nil || !one.future.IsReady() {
			continue
		}
		var said api.TimingsRecorded
		err := one.future.Get(ctx, &said)
		out = out || err == nil && said.Superseded // recorded deals with errors
	}
	return out
}

// recorded waits until all measured times are recorded.
func (r *trainRun) recorded(ctx workflow.Context) error {
	skip := func([]StageFailure) skipping {
		return skipping{words: "these measured times are not kept; no stage reads them"}
	}
	for _, one := range r.recordings {
		// A recording that failed alongside the steps may have failed in an outage that is over by now. So the run
		// tries it again before it asks a person.
		var out api.TimingsRecorded
		err := one.future.Get(ctx, &out)
		if err != nil && !temporal.IsCanceledError(err) {
			err = r.attempt(ctx, skip, func(ctx workflow.Context) (err error) {
				out, err = call[api.TimingsRecorded](ctx, r.limits, api.RecordTimings, "measured times", one.in)
				return err
			})
		}
		if err != nil {
			return err
		}
		r.handsOver = r.handsOver || out.Superseded
	}
	r.recordings = nil
	return nil
}
