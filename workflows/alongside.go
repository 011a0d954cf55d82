package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// alongsideAfter is how long a step runs before the work starts that no step waits for. Between two steps nothing else
// runs, so that every transaction of the server there delays the next step.
const alongsideAfter = 150 * time.Millisecond

// later is work that no step waits for. It starts once the next step runs.
type later []func(ctx workflow.Context)

func (l *later) add(f func(ctx workflow.Context)) { *l = append(*l, f) }

// during starts the work that waits for the step that begins now, a moment after its start or when the step ends.
func (l *later) during(ctx workflow.Context) (stop func()) {
	if len(*l) == 0 {
		return func() {}
	}
	waiting, cancel := workflow.WithCancel(ctx)
	workflow.Go(waiting, func(waiting workflow.Context) {
		if workflow.Sleep(waiting, alongsideAfter) == nil {
			l.flush(ctx)
		}
	})
	return func() {
		cancel()
		l.flush(ctx)
	}
}

// flush starts what waits.
func (l *later) flush(ctx workflow.Context) {
	all := *l
	*l = nil
	for _, f := range all {
		f(ctx)
	}
}
