package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// nameRun returns the run that a workflow works for, by default named as the workflow, and sets its search attribute.
func nameRun(ctx workflow.Context, run string) (string, error) {
	if run == "" {
		run = workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	if err := checkRun(run); err != nil {
		return "", refuse(ctx, err)
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, attrRunID.ValueSet(run)); err != nil {
		return "", fmt.Errorf("set search attribute RunID: %w", err)
	}
	return run, nil
}

// answer has a workflow answer a query.
func answer(ctx workflow.Context, query string, handler any) error {
	if err := workflow.SetQueryHandler(ctx, query, handler); err != nil {
		return fmt.Errorf("register query %s: %w", query, err)
	}
	return nil
}

// shell is what EvaluateRun, ReprocessRun and Experiment have in common: they make attempts until one succeeds. After
// one that fails, the workflow parks until a person decides; the next attempt adopts committed work.
type shell struct {
	at       position
	progress Progress
	parking  parking
	states   states
	limits   limits // of the attempt
	noSkip   string // why nothing of the run can be skipped
}

// open begins the workflow of a run.
func (s *shell) open(ctx workflow.Context, run, recipe string) (err error) {
	if run, err = nameRun(ctx, run); err != nil {
		return err
	}
	s.at.run, s.states.run = run, run
	s.progress.Run, s.progress.Recipe = run, recipe
	s.progress.Started = workflow.GetInfo(ctx).WorkflowStartTime.UTC()
	s.states.began(ctx, s.progress.Started)
	err = answer(ctx, QueryProgress, func() (Progress, error) {
		p := s.progress
		p.Stage, p.Step, p.Parked = s.at.stage, s.at.step, s.parking.parked
		return p, nil
	})
	if err != nil {
		return err
	}
	return s.parking.register(ctx)
}

// attempts makes attempts until one succeeds.
func (s *shell) attempts(ctx workflow.Context, attempt func(ctx workflow.Context) error) error {
	for s.limits = (limits{}); ; {
		s.at.stage = ""
		err := attempt(ctx)
		if err == nil {
			s.states.settle(ctx)
			s.states.show(ctx, schema.StateDone)
			s.at.enter(ctx, "done")
		}
		if err == nil || temporal.IsCanceledError(err) || workflow.IsContinueAsNewError(err) {
			return err
		}
		all := failures(err, s.at.stage)
		chosen, err := s.park(ctx, all)
		if err != nil {
			return err
		}
		s.limits = chosen.limits(s.limits, all)
	}
}

// park waits for a person. It returns the failure if there is to be no other attempt.
func (s *shell) park(ctx workflow.Context, all []StageFailure) (chosen decision, err error) {
	kind := all[0].Kind
	if kind != api.FailBadInput {
		what := Parked{Step: s.at.step, Kind: kind, Failures: all, NoSkip: s.noSkip}
		chosen, err = s.parking.hold(ctx, &s.states, what,
			func() { workflow.SetCurrentDetails(ctx, what.markdown(s.at.run)) })
		if err != nil || chosen.action != UpdateAbort {
			return chosen, err
		}
		s.states.leave(ctx, schema.StateFailed, kind, reasonOf(all))
		return chosen, aborted(all)
	}
	setFailureKind(ctx, kind)
	if s.at.stage == schema.StagePrepare { // there may be no run to note anything of
		s.states.show(ctx, schema.StateFailed)
	} else {
		s.states.leave(ctx, schema.StateFailed, kind, reasonOf(all))
	}
	return chosen, temporal.NewNonRetryableApplicationError(s.at.stage+": "+all[0].Text, kind, nil)
}
