package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// alongsideAfter is how long a step runs before the work starts that no step waits for. Between two steps nothing else
// runs, so that every transaction of the server there delays the next step.
const alongsideAfter = 150 * time.Millisecond

// alongside does something that no step waits for once the next step runs.
func (r *trainRun) alongside(f func(ctx workflow.Context)) { r.later = append(r.later, f) }

// startAlongside starts what waits for the step that begins now, a moment after its start or when the step ends.
func (r *trainRun) startAlongside(ctx workflow.Context) (stop func()) {
	if len(r.later) == 0 {
		return func() {}
	}
	waiting, cancel := workflow.WithCancel(ctx)
	workflow.Go(waiting, func(waiting workflow.Context) {
		if workflow.Sleep(waiting, alongsideAfter) == nil {
			r.flush(ctx)
		}
	})
	return func() {
		cancel()
		r.flush(ctx)
	}
}

// flush starts what waits.
func (r *trainRun) flush(ctx workflow.Context) {
	later := r.later
	r.later = nil
	for _, f := range later {
		f(ctx)
	}
}
