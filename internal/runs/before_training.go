package runs

import (
	"context"
	"log/slog"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// beforeTraining prints once what the run's world offers to the methods before training: as soon as the first step's
// trajectories are judged, before the first update. A command that joins a run later does not print it: `show` and the
// report have it.
func (s *Session) beforeTraining(ctx context.Context, run string, view *ProgressView, p workflows.Progress) {
	if view.offered || len(p.Lines) == 0 && !s.judged(ctx, run, p.Step) {
		return
	}
	view.offered = true
	if len(p.Lines) > 0 && p.Lines[0].Step > 1 {
		return
	}
	r, err := analysis.New(s.Store).Properties(ctx, run)
	if err != nil {
		view.line("what the world offers before training cannot be read: " + err.Error())
		return
	}
	if r == nil {
		return
	}
	var text strings.Builder
	_ = analysis.WriteProperties(&text, r) // a strings.Builder returns no error
	view.line(strings.TrimRight(text.String(), "\n"))
}

// judged reports whether step 1 runs and has committed its properties. A store that does not answer is asked again with
// the next poll.
func (s *Session) judged(ctx context.Context, run string, step int) bool {
	if step != 1 {
		return false
	}
	_, _, found, err := commit.New(s.Store).Lookup(ctx, schema.At(run, step, schema.StageResample))
	if err != nil {
		slog.Debug("look for the first step's properties", "run", run, "error", err)
	}
	return found && err == nil
}
