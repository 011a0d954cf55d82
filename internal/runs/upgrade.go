package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// Times of an upgrade.
const (
	knownWithin = 30 * time.Second // workers that have just started are known to the server after moments
	knownEvery  = 500 * time.Millisecond
)

// Build is one build of a deployment.
type Build struct {
	ID       string   `json:"build_id"`
	Current  bool     `json:"current"`  // new runs begin on it
	Draining bool     `json:"draining"` // it is not current, and workflows may still be on it
	Runs     []string `json:"runs"`     // open trainings that are on it
}

// Moved is a run that was told to go on with the current build.
type Moved struct {
	Run  string `json:"run_id"`
	From string `json:"from"` // the build that it was on
	Step int    `json:"step"` // the first step on the current one
}

// openTrainings finds the trainings that have not ended.
const openTrainings = `WorkflowType = "` + workflows.TrainRunName + `" AND ExecutionStatus = "Running"`

// Builds lists a deployment's builds, in the order in which their workers first came.
func (s *Session) Builds(ctx context.Context, deployment string) ([]Build, error) {
	d, err := s.Temporal.WorkerDeploymentClient().GetHandle(deployment).Describe(ctx,
		client.WorkerDeploymentDescribeOptions{})
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return nil, badinput.Errorf("there is no deployment %q; a worker makes it: ropewalk worker --deployment %s",
			deployment, deployment)
	}
	if err != nil {
		return nil, fmt.Errorf("look up the deployment %s: %w", deployment, err)
	}
	on, err := s.trainingsOf(ctx, deployment)
	if err != nil {
		return nil, err
	}
	versions := d.Info.VersionSummaries
	slices.SortFunc(versions, func(a, b client.WorkerDeploymentVersionSummary) int {
		return a.CreateTime.Compare(b.CreateTime)
	})
	current := d.Info.RoutingConfig.CurrentVersion
	var out []Build
	for _, v := range versions {
		id := v.Version.BuildID
		out = append(out, Build{ID: id, Current: current != nil && current.BuildID == id,
			Draining: v.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDraining,
			Runs:     append([]string{}, on[id]...)})
	}
	return out, nil
}

// trainingsOf lists the open trainings of a deployment by the build that they are on.
func (s *Session) trainingsOf(ctx context.Context, deployment string) (map[string][]string, error) {
	out := map[string][]string{}
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: openTrainings, PageSize: 200}
	for {
		page, err := s.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the open runs: %w", err)
		}
		for _, info := range page.GetExecutions() {
			run := info.GetExecution().GetWorkflowId()
			d, err := s.Describe(ctx, run) // the list lags behind
			if err != nil {
				return nil, fmt.Errorf("look up run %s: %w", run, err)
			}
			on := d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion()
			if on.GetDeploymentName() == deployment {
				out[on.GetBuildId()] = append(out[on.GetBuildId()], run)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return out, nil
		}
	}
}

// Upgrade makes a build of a deployment the current one, and tells the open trainings of its other builds to go on with
// it from their next step. A second call does what the first one left undone.
func (s *Session) Upgrade(ctx context.Context, deployment, build string) ([]Moved, error) {
	if err := s.Note(ctx, schema.NoRun, "upgrade", map[string]string{"deployment": deployment,
		"build_id": build}); err != nil {
		return nil, err
	}
	if err := s.makeCurrent(ctx, deployment, build); err != nil {
		return nil, err
	}
	builds, err := s.Builds(ctx, deployment)
	if err != nil {
		return nil, err
	}
	var moved []Moved
	var failed []error
	for _, b := range builds {
		if b.ID == build {
			continue
		}
		for _, run := range b.Runs {
			var out workflows.Steered
			if err := s.Update(ctx, run, workflows.UpdateUpgrade, &out); err != nil {
				failed = append(failed, fmt.Errorf("run %s stays on build %s: %w", run, b.ID, err))
				continue
			}
			moved = append(moved, Moved{Run: run, From: b.ID, Step: out.Step})
		}
	}
	return moved, errors.Join(failed...)
}

// makeCurrent makes a build the current one, once its workers are known to the server.
func (s *Session) makeCurrent(ctx context.Context, deployment, build string) error {
	handle := s.Temporal.WorkerDeploymentClient().GetHandle(deployment)
	deadline := time.Now().Add(knownWithin)
	for {
		err := s.retryTransient(ctx, func(ctx context.Context) error {
			_, err := handle.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
			return err
		})
		var missing *serviceerror.NotFound
		var early *serviceerror.FailedPrecondition // also: its workers poll fewer queues than those before
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &missing) && !errors.As(err, &early):
			return fmt.Errorf("make build %s of %s current: %w", build, deployment, err)
		case time.Now().After(deadline):
			return badinput.Errorf("build %s of deployment %s cannot become the current one: %v; start its workers "+
				"first, for every queue: ropewalk worker --deployment %s", build, deployment, err, deployment)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(knownEvery):
		}
	}
}
