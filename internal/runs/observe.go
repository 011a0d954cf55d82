package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// observing bounds how long a command that only reads waits for Temporal.
const observing = 5 * time.Second

// Observe asks the Temporal server that runs how the workflows of these runs are; of all runs where none is named. It
// starts nothing. A server that does not answer is reported, and the runs' notes then say how they were.
func (c Connector) Observe(ctx context.Context, s *Session, named ...string) (analysis.Observed, error) {
	address, running, err := stack.TemporalNow()
	if err != nil {
		return analysis.Observed{}, err
	}
	if !running {
		if _, local := s.Store.(store.Files); local {
			return analysis.Observed{Server: status.Stopped}, nil
		}
		return analysis.Observed{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, observing)
	defer cancel()
	out, err := observe(ctx, address, named)
	if err != nil {
		fmt.Fprintf(c.Messages, "warning: Temporal at %s does not say how the runs are (%v): their states are "+
			"those that the record noted last\n", address.Temporal, err)
		return analysis.Observed{}, nil
	}
	return out, nil
}

func observe(ctx context.Context, address stack.Addresses, named []string) (analysis.Observed, error) {
	options, err := address.ClientOptions()
	if err != nil {
		return analysis.Observed{}, err
	}
	options.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	temporal, err := client.DialContext(ctx, options)
	if err != nil {
		return analysis.Observed{}, err
	}
	defer temporal.Close()
	out := analysis.Observed{Server: status.Asked, Workflows: map[string]status.Workflow{}}
	if len(named) == 0 {
		return out, listed(ctx, temporal, out.Workflows)
	}
	for _, run := range named {
		last, err := LastOf(ctx, temporal, run)
		if err != nil {
			return analysis.Observed{}, err
		}
		if last.exists {
			out.Workflows[run] = last.state
		}
	}
	return out, nil
}

// listed reads the latest workflow of every run.
func listed(ctx context.Context, temporal client.Client, into map[string]status.Workflow) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: workflows.RunsQuery, PageSize: 200}
	for {
		page, err := temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list the workflows of runs: %w", err)
		}
		for _, info := range page.GetExecutions() { // the newest first
			run := info.GetExecution().GetWorkflowId()
			if _, seen := into[run]; !seen {
				into[run] = workflowOf(info)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// workflowOf reads a workflow's state from its status and its search attributes.
func workflowOf(info *workflowpb.WorkflowExecutionInfo) status.Workflow {
	attributes := info.GetSearchAttributes().GetIndexedFields()
	w := status.Workflow{Kind: keyword(attributes["FailureKind"]), Stage: keyword(attributes["Stage"])}
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		w.Ended = status.EndedCompleted
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		w.Ended = status.EndedFailed
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		w.Ended, w.Kind = status.EndedFailed, "timeout"
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		w.Ended = status.EndedCancelled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		w.Ended = status.EndedTerminated
	}
	w.Paused = w.Ended == status.StillOpen && w.Stage == workflows.StagePaused
	return w
}

// Known is what the record and the server, if one is running, know of a run's name.
type Known struct {
	Run      analysis.Run
	InRecord bool // it is in the catalogue, or queued
	OnServer bool // the server that runs now has a workflow of that name
}

// Known looks a run up. It starts nothing.
func (c Connector) Known(ctx context.Context, s *Session, run string) (k Known, err error) {
	o, err := c.Observe(ctx, s, run)
	if err != nil {
		return k, err
	}
	_, k.OnServer = o.Workflows[run]
	record := analysis.New(s.Store).WithServer(o)
	k.Run, err = record.Run(ctx, run)
	k.InRecord = err == nil
	if !errors.Is(err, analysis.ErrNoRun) {
		return k, err
	}
	missing := err
	request, queued, err := record.Request(ctx, run)
	switch {
	case err != nil:
		return k, err
	case queued:
		k.Run, k.InRecord = record.Queued(request), true
	case !k.OnServer:
		return k, Missing(missing)
	}
	return k, nil
}
