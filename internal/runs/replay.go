package runs

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// Replay runs ReplayStage to its end. When ctx ends, the workflow goes on: the caller decides whether to end it.
func (s *Session) Replay(ctx context.Context, id, summary string,
	input workflows.ReplayStageInput) (workflows.ReplayStageResult, error) {
	var result workflows.ReplayStageResult
	if err := s.Note(ctx, input.Run, schema.DeedReplay, input); err != nil {
		return result, err
	}
	err := s.retryTransient(ctx, func(ctx context.Context) error { // no other replay has this id
		_, err := s.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: id, TaskQueue: workflows.QueueCPU, StaticSummary: summary,
		}, workflows.ReplayStageName, input)
		return err
	})
	if err != nil {
		return result, fmt.Errorf("start replay %s: %w", id, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Await(ctx, id, &result) }()
	select {
	case err = <-ended:
	case <-s.Lease.Done():
		return workflows.ReplayStageResult{}, fmt.Errorf("%w; remove the cause and start the replay again", s.Lost())
	}
	return result, Failure(err)
}
