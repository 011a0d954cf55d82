package runs

import (
	"context"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
)

// beforeTraining prints once what the run's world offers to the methods before training, when the first step is
// committed. A command that joins a run later does not print it: `show` and the report have it.
func (s *Session) beforeTraining(ctx context.Context, run string, view *ProgressView) {
	if view.offered || view.shown == 0 {
		return
	}
	view.offered = true
	if view.first != 1 {
		return
	}
	r, found, err := analysis.New(s.Store).Properties(ctx, run)
	if err != nil {
		view.line("what the world offers before training cannot be read: " + err.Error())
		return
	}
	if !found {
		return
	}
	var text strings.Builder
	_ = analysis.WriteProperties(&text, r) // a strings.Builder returns no error
	view.line(strings.TrimRight(text.String(), "\n"))
}
