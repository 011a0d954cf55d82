package runs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/workflows"
)

// EveryRun is passed to Join by a command under which all open runs go on.
const EveryRun = "*"

// leftBehind lists the runs on the local stack whose commands were killed, except for those that this command is about.
// end reports whether this command starts the worker that would continue them.
func leftBehind(need stack.Need, about []string) (left []string, end bool, err error) {
	if !need.Worker {
		return nil, false, nil
	}
	if left, err = stack.LeftBehind(); err != nil {
		return nil, false, err
	}
	left = slices.DeleteFunc(left, func(run string) bool { return slices.Contains(about, run) })
	running, err := stack.WorkerRuns()
	return left, !running && !slices.Contains(about, EveryRun), err
}

// endLeftBehind ends the runs that were left behind before a worker starts, since no command asks for them now. What
// they have committed is kept. The stack that this needs is up until the returned session is closed.
func (c Connector) endLeftBehind(ctx context.Context, left []string) (*Session, error) {
	s, err := c.join(ctx, NeedTemporal)
	if err != nil || !s.Local() {
		return s, err
	}
	for _, run := range left {
		if err := c.endOne(ctx, s, run); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// reportLeftBehind names the open runs that the running worker continues although no command follows them.
func (c Connector) reportLeftBehind(ctx context.Context, s *Session, left []string) error {
	if !s.Local() {
		return nil
	}
	for _, run := range left {
		last, err := LastOf(ctx, s.Temporal, run)
		if err != nil {
			return err
		}
		if last.Open {
			fmt.Fprintf(c.Messages, "run %s is open, and its command was killed: it goes on here. "+
				"ropewalk follow %s shows it, ropewalk cancel %s ends it\n", run, run, run)
			continue
		}
		if err := stack.Forget(run); err != nil {
			return err
		}
	}
	return nil
}

// endOne ends one run that was left behind, unless it waits for the user's decision or has ended.
func (c Connector) endOne(ctx context.Context, s *Session, run string) error {
	last, err := LastOf(ctx, s.Temporal, run)
	if err != nil {
		return err
	}
	switch {
	case last.Waits:
		fmt.Fprintf(c.Messages, "run %s is open and waits, parked or paused; its command was killed. "+
			"ropewalk follow %s shows it\n", run, run)
	case last.Open:
		again := "ropewalk resume " + run
		if last.Workflow == workflows.ExperimentName {
			again = "ropewalk experiment run FILE"
		}
		reason := "its command was killed; go on with: " + again
		NoteState(ctx, s.Store, run, status.Interrupted, reason)
		// No worker runs that could take up a cancellation, and one that is left pending would end a resumed run.
		if err := s.Temporal.TerminateWorkflow(ctx, run, "", reason); err != nil {
			return fmt.Errorf("end run %s, whose command was killed: %w", run, err)
		}
		fmt.Fprintf(c.Messages, "run %s was open, and its command was killed: it does not go on by itself. "+
			"%s goes on\n", run, again)
	}
	return stack.Forget(run)
}

// Hold notes that this command follows a run on the local stack, until the returned function is called. The note stays
// if the run then goes on without the command.
func (s *Session) Hold(run string) func() {
	if !s.Local() {
		return func() {}
	}
	held, err := stack.Hold(run)
	if err != nil { // the run itself does not depend on the note
		slog.Warn("note that the run is followed", "run", run, "error", err)
		return func() {}
	}
	return func() {
		end := held.Leave
		if s.atRest(run) {
			end = held.Release
		}
		if err := end(); err != nil {
			slog.Warn("end the note that the run is followed", "run", run, "error", err)
		}
	}
}

// atRest reports whether a run takes no further step without the user's decision.
func (s *Session) atRest(run string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	last, err := LastOf(ctx, s.Temporal, run)
	return err == nil && (!last.Open || last.Waits)
}
