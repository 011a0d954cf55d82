package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// ExperimentID is the id of an experiment's workflow, under which it is paused and cancelled like a run.
func ExperimentID(name string) string { return "experiment-" + name }

// BeginExperiment starts an experiment's workflow, or joins the open one of its name. privileged are the digests of
// recipes that name programs or secrets, which workers of the local stack use for no one else. To join confirms
// nothing: someone else may have started the open one.
func (s *Session) BeginExperiment(ctx context.Context, in workflows.ExperimentInput, privileged map[string]string,
) (joined bool, err error) {
	if last, err := LastOf(ctx, s.Temporal, in.Name); err == nil && last.Open {
		return true, nil
	}
	for run, digest := range privileged {
		if err := s.confirm(ctx, run, digest); err != nil {
			return false, err
		}
	}
	if err := s.Note(ctx, schema.NoRun, "start", map[string]string{"experiment": in.Name}); err != nil {
		return false, err
	}
	err = s.retryTransient(ctx, func(ctx context.Context) error {
		_, err := s.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: in.Name,
			TaskQueue: workflows.QueueCPU, StaticSummary: "experiment " + in.Name,
			WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
			WorkflowExecutionErrorWhenAlreadyStarted: true}, workflows.ExperimentName, in)
		return err
	})
	var open *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &open) {
		return true, nil
	}
	return false, err
}

// FollowExperiment calls show with the state of an experiment whenever it may have changed, until the experiment ends.
// If a trial or the experiment itself waits for a person and nothing else runs, it returns with parked set.
func (s *Session) FollowExperiment(ctx context.Context, id string, show func(workflows.ExperimentState) error,
) (last workflows.ExperimentState, parked bool, err error) {
	ended := make(chan error, 1)
	var result workflows.ExperimentState // is set when ended has an answer
	go func() { ended <- s.Await(ctx, id, &result) }()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			var ended *temporal.TerminatedError
			switch {
			case err == nil:
				err = show(result)
			case temporal.IsCanceledError(err) || errors.As(err, &ended):
				err = errors.New("the experiment was ended from outside; the same command goes on")
			}
			return result, false, err
		case <-tick.C:
			state, err := s.experimentState(ctx, id)
			if err != nil {
				slog.Debug("query trials", "experiment", id, "error", err)
				continue
			}
			if err := show(state); err != nil {
				return state, false, err
			}
			if s.waits(ctx, state) {
				return state, true, nil
			}
		case <-s.Lease.Done():
			return last, false, fmt.Errorf("%w; everything committed is kept: the same command goes on", s.Lost())
		case <-ctx.Done():
			return last, false, ctx.Err()
		}
	}
}

func (s *Session) experimentState(ctx context.Context, id string) (out workflows.ExperimentState, err error) {
	ctx, cancel := context.WithTimeout(ctx, observing)
	defer cancel()
	value, err := s.Temporal.QueryWorkflow(ctx, id, "", workflows.QueryTrials)
	if err != nil {
		return out, err
	}
	return out, value.Get(&out)
}

// waits reports whether the experiment, or every trial that runs, is parked.
func (s *Session) waits(ctx context.Context, state workflows.ExperimentState) bool {
	if state.Parked != nil {
		return true
	}
	running := state.Running()
	for _, run := range running {
		if last, err := LastOf(ctx, s.Temporal, run); err != nil || !last.Open || last.state.Kind == "" {
			return false
		}
	}
	return len(running) > 0
}
