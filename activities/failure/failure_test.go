package failure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A stage that runs another stage within itself, as a check does, keeps that stage's classification of errors.
func TestClassifyKeepsWhatIsDecided(t *testing.T) {
	passing := errors.New("the server is away")
	damaged := fmt.Errorf("read turns: %w: it is cut short", commit.ErrDamaged)
	for name, c := range map[string]struct {
		err  error
		kind string // "": may pass
		text string
	}{
		"nothing":  {nil, "", ""},
		"may pass": {passing, "", "the server is away"},
		"damaged":  {damaged, api.FailCorrupt, "read turns: record is damaged: it is cut short"},
		"damaged, within": {fmt.Errorf("step 3: %w", Classify(damaged)), api.FailCorrupt,
			"step 3: read turns: record is damaged: it is cut short"},
		"refused, within": {fmt.Errorf("step 3: %w", Classify(refusal.Unusablef("no batch"))),
			api.FailRefused, "step 3: no batch"},
		"rows that contradict each other": {fmt.Errorf("advantage: %w", refusal.Corruptf("no reward")),
			api.FailCorrupt, "advantage: no reward"},
		"rows that a stage cannot work on": {refusal.Unusablef("no outputs"), api.FailRefused, "no outputs"},
		"a request that someone must change": {fmt.Errorf("replay: %w", badinput.Errorf("step: no such step")),
			api.FailBadInput, "replay: step: no such step"},
		"may pass, within": {fmt.Errorf("step 3: %w", Classify(passing)), "", "step 3: the server is away"},
		"what may be retried, within": {fmt.Errorf("step 3: %w", temporal.NewApplicationError("it is away", "Lost")),
			"", "step 3: it is away (type: Lost, retryable: true)"},
		"what may be retried": {temporal.NewApplicationError("the server is away", "Lost"), "",
			"the server is away (type: Lost, retryable: true)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Classify(c.err)
			if c.err == nil {
				require.NoError(t, got)
				return
			}
			var decided *temporal.ApplicationError
			if c.kind == "" {
				require.EqualError(t, got, c.text)
				require.False(t, errors.As(got, &decided) && decided.NonRetryable())
				return
			}
			require.ErrorAs(t, got, &decided)
			require.True(t, decided.NonRetryable())
			require.Equal(t, c.kind, decided.Type())
			require.Equal(t, c.text, decided.Message())
		})
	}
}

// A limit of the engine is not the activity's deadline: Temporal would not retry after the activity's deadline.
func TestALimitOfSomebodyElse(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	lost := fmt.Errorf("engine lost: await its greeting: %w", context.DeadlineExceeded)
	got := OwnLimit(t.Context(), lost)
	require.NotErrorIs(t, got, context.DeadlineExceeded)
	require.ErrorContains(t, got, lost.Error())
	var decided *temporal.ApplicationError
	require.ErrorAs(t, got, &decided)
	require.False(t, decided.NonRetryable())
	require.Equal(t, lost, OwnLimit(ended, lost), "the activity's own end stays what it is")
	require.NoError(t, OwnLimit(t.Context(), nil))
}

// What may pass is tried again and has a kind of its own: a full disk, and what was lost before it was committed.
func TestClassifyNamesWhatMayPass(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		kind string
	}{
		"a full store": {fmt.Errorf("reward: put shard: %w (XMinioStorageFull)", store.ErrNoSpace), api.FailFull},
		"a full disk": {fmt.Errorf("reward: %w", &os.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC}),
			api.FailFull},
		"a full quota":   {&os.PathError{Op: "write", Path: "a", Err: syscall.EDQUOT}, api.FailFull},
		"a lost object":  {fmt.Errorf("reward: audit: %w: a", commit.ErrUnkept), api.FailUnkept},
		"a full, within": {fmt.Errorf("step 3: %w", Classify(store.ErrNoSpace)), api.FailFull},
	} {
		t.Run(name, func(t *testing.T) {
			var app *temporal.ApplicationError
			require.ErrorAs(t, Classify(c.err), &app)
			require.Equal(t, c.kind, app.Type())
			require.False(t, app.NonRetryable())
		})
	}
}

// An object that is found to be too large later is not retried either.
func TestTooLargeIsPermanent(t *testing.T) {
	objects := faults.New(mem.New()).WithMaxObject(10)
	err := objects.PutFrom(context.Background(), "a/model.safetensors", nil, 11)
	require.ErrorIs(t, err, store.ErrTooLarge)
	var app *temporal.ApplicationError
	require.ErrorAs(t, Classify(fmt.Errorf("update: %w", err)), &app)
	require.True(t, app.NonRetryable())
	require.Equal(t, api.FailBadInput, app.Type())
}

// No error has the name of a type in Go as its kind. What wraps an error that has a kind has that kind too.
func TestKindsOfFailures(t *testing.T) {
	away := temporal.NewApplicationError("it is away", api.FailJudge)
	for name, c := range map[string]struct {
		err  error
		kind string
	}{
		"a plain error":      {errors.New("no room"), ""},
		"a wrapped one":      {fmt.Errorf("write: %w", errors.New("no room")), ""},
		"one with a type":    {fmt.Errorf("read: %w", &fs.PathError{Op: "open", Err: fs.ErrNotExist}), ""},
		"several":            {errors.Join(errors.New("no room"), fs.ErrNotExist), ""},
		"one with a kind":    {away, api.FailJudge},
		"one with a wrapped": {fmt.Errorf("judge: %w", fmt.Errorf("ask: %w", away)), api.FailJudge},
		"a user's code":      {Classify(fmt.Errorf("function: %w", codeError(t))), api.FailCode},
	} {
		for f := NewKinds().ErrorToFailure(c.err); f != nil; f = f.GetCause() {
			require.Equal(t, c.kind, f.GetApplicationFailureInfo().GetType(), name)
		}
	}
}

// codeError is the error of a function that does not load.
func codeError(t *testing.T) error {
	t.Helper()
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	_, err := (&remote.Functions{}).Code(t.Context(), remote.FunctionSettings{Module: "no_such_module:f"})
	require.ErrorContains(t, err, "ModuleNotFoundError")
	return err
}
