package zygote

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
)

func TestACallThatBreaksLeavesTheOthers(t *testing.T) {
	e := open(t, Options{Workers: 2})
	onCall(t, func(zygote, _ int) { _ = unix.Kill(zygote, unix.SIGKILL) })
	calls := []sandbox.Call{{Code: "1"}, {Code: held}, {Code: "3"}, {Code: "4"}}
	results, err := e.Run(t.Context(), calls)
	var broken sandbox.CallErrors
	require.ErrorAs(t, err, &broken)
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	require.ErrorContains(t, broken[1], "run call 1: sandbox broke, twice: await zygote's reply")
	for i, want := range []string{"1", "", "3", "4"} {
		require.Equal(t, want, results[i].Value)
		require.Equal(t, want == "", broken[i] != nil, "call %d: %v", i, broken[i])
	}
	outcomes, err := sandbox.RunEach(t.Context(), e, calls)
	require.NoError(t, err)
	require.ErrorIs(t, outcomes[1].Broken, sandbox.ErrInfrastructure)
	require.Equal(t, "4", outcomes[3].Value)
}

func TestASandboxThatIsGoneIsNotTriedForEveryCall(t *testing.T) {
	e := open(t, Options{Workers: 1})
	s := e.peek()
	s.drop(s.bare())
	e.plan.python.Executable = "/nowhere/python3"
	calls := make([]sandbox.Call, 100)
	_, err := e.Run(t.Context(), calls)
	require.ErrorIs(t, err, sandbox.ErrInfrastructure)
	// One worker runs the calls in their order, so the first call is the first to break.
	require.ErrorContains(t, err, "run call 0: sandbox broke, twice: no interpreter can be started")
	var broken sandbox.CallErrors
	require.NotErrorAs(t, err, &broken, "the whole batch has failed")
}
