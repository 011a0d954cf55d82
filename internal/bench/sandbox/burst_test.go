package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

func TestTellCountsResults(t *testing.T) {
	answers := []answer{{took: 30 * time.Millisecond}, {broken: errors.New("lost")}, {took: 10 * time.Millisecond},
		{broken: errors.New("wrong"), mixed: true}, {broken: errors.New("late")}}
	got := tell(answers, 2*time.Second)
	require.Equal(t, &burst{Calls: 5, Answered: 2, Mixed: 1, P50: 10, P99: 30, Seconds: 2, CallsPerS: 1,
		FirstBroken: "lost"}, got)
	none := tell([]answer{{broken: errors.New("lost")}}, time.Second)
	require.Equal(t, &burst{Calls: 1, Seconds: 1, FirstBroken: "lost"}, none)
}

func TestNumberedCallsDiffer(t *testing.T) {
	var s subject
	s.take(plain, sandbox.PackagesBare)
	call, output := s.numbered(17)
	require.Equal(t, "print(1+2); print(17)", call.Code)
	require.Equal(t, "3\n17\n", output)
	require.NoError(t, check(sandbox.Result{Status: sandbox.StatusOK, Stdout: output}, output))
	require.ErrorContains(t, check(sandbox.Result{Status: sandbox.StatusRuntime, Stderr: "a\nValueError: b\n"}, output),
		"ValueError: b")
}

func TestWatchSeesMemory(t *testing.T) {
	peak := watch(os.Getpid())
	most, err := peak()
	require.NoError(t, err)
	require.Greater(t, most, int64(1<<20))
	_, err = watch(-1)()
	require.Error(t, err)
}
