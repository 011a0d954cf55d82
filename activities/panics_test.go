package activities

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// exploding is a store that panics when a key of a stage is written.
type exploding struct {
	store.Store
	stage string
}

func (s exploding) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if strings.Contains(key, "/"+s.stage+"/") {
		panic("index out of range [7]")
	}
	return s.Store.PutIfAbsent(ctx, key, data)
}

// A panic in a stage that an activity runs within itself fails the attempt, and says which stage it was.
func TestAPanicInAPartFailsItsAttempt(t *testing.T) {
	for _, stage := range []string{schema.StageRollout, schema.StageAssemble, schema.StageReward} {
		b := episodesOf(t, 1)
		b.on(exploding{b.deps.Store, stage})
		_, err := b.run()
		require.ErrorContains(t, err, "panicked: index out of range [7]", stage)
		require.Equal(t, stage, partOf(t, err).Stage)
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.Equal(t, api.FailPanic, app.Type(), stage)
		require.False(t, app.NonRetryable(), "it is tried again")
	}
}

// Whatever activity panics is tried twice more.
func TestAPanicIsTriedTwiceMore(t *testing.T) {
	tried := 0
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivityWithOptions(stage.Of(func(context.Context, *stage.Env, api.Scope) (api.Done, error) {
		tried++
		none := []int{}
		none[0]++
		return api.Done{}, nil
	}).Activity, activity.RegisterOptions{Name: "explode"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 6}})
		return workflow.ExecuteActivity(ctx, "explode", api.Scope{}).Get(ctx, nil)
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	require.Equal(t, api.FailPanic, app.Type())
	require.Equal(t, "panicked: runtime error: index out of range [0] with length 0", app.Message())
	require.Equal(t, stage.PanicAttempts, tried)
}
