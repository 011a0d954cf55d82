package rpc

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/ropewalk/ropewalk/sandbox"
)

// wired encodes and decodes a message.
func wired[M proto.Message](t *testing.T, in, out M) M {
	t.Helper()
	data, err := proto.Marshal(in)
	require.NoError(t, err)
	require.NoError(t, proto.Unmarshal(data, out))
	return out
}

func TestCallsAndResultsSurviveEncoding(t *testing.T) {
	files := []sandbox.File{{Name: "a/b", Content: []byte{0, 255}}, {Name: "empty"}}
	for _, c := range []sandbox.Call{
		{},
		{Code: "\xff", Stdin: "\x00"},
		{Language: "bash", Packages: "numpy", Code: "x", Stdin: "y", Files: files, Collect: []string{"c"}, Trace: "t",
			Limits: sandbox.Limits{CPU: time.Second, Wall: -1, MemoryBytes: math.MaxInt64, OutputBytes: math.MinInt,
				FileBytes: 5, Processes: 6}},
	} {
		require.Equal(t, c, wired(t, FromCall(c), &Call{}).Sandbox())
	}
	for _, r := range []sandbox.Result{
		{},
		{Status: sandbox.StatusKilled, ExitCode: -1, Signal: "SIGKILL", Stdout: "\xff", Stderr: "e", Traceback: "t",
			Value: "v", Files: files,
			Timing: sandbox.Timing{Queue: 1, Wall: 2, CPU: 3, PeakMemory: 4}},
	} {
		require.Equal(t, r, wired(t, FromResult(r), &Result{}).Sandbox())
	}
}

func TestFailuresKeepTheirKind(t *testing.T) {
	for _, tt := range []struct {
		err         error
		kind, field string
		is          []error
	}{
		{sandbox.Call{Code: "\xff"}.Validate(), KindBadCall, "code", []error{sandbox.ErrBadCall}},
		{fmt.Errorf("%w: %q", ErrKeyConflict, "k"), KindKeyConflict, "key",
			[]error{ErrKeyConflict, sandbox.ErrBadCall}},
		{fmt.Errorf("%w: its queue life is 1s", sandbox.ErrQueueTimeout), KindQueueTimeout, "",
			[]error{sandbox.ErrQueueTimeout}},
		{errors.New("not \xff UTF-8"), KindInfrastructure, "", []error{sandbox.ErrInfrastructure}},
		{ErrDraining, KindDraining, "", []error{ErrDraining}},
		{sandbox.ErrSessionEnded, KindSessionEnded, "", []error{sandbox.ErrSessionEnded, sandbox.ErrSessionLost}},
		{fmt.Errorf("%w: %w", sandbox.ErrSessionLost, sandbox.ErrInfrastructure), KindSessionLost, "",
			[]error{sandbox.ErrSessionLost}},
	} {
		f := wired(t, FromError(tt.err), &Failure{})
		require.Equal(t, tt.kind, f.GetKind())
		require.Equal(t, tt.field, f.GetField())
		for _, is := range tt.is {
			require.ErrorIs(t, f.Err(), is)
		}
	}
	require.NotErrorIs(t, FromError(sandbox.ErrSessionLost).Err(), sandbox.ErrSessionEnded)
	require.EqualError(t, (&Failure{}).Err(), sandbox.ErrInfrastructure.Error())
}
