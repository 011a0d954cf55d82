package bench

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcessorTimeBetweenSamples(t *testing.T) {
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	m := &Meter{}
	require.Zero(t, m.Used(at(0), at(9)))
	m.samples = []usedBy{{at(0), 10}, {at(2), 14}, {at(3), 14}}
	require.InDelta(t, 2, m.Used(at(0), at(1)), 1e-9)
	require.InDelta(t, 4, m.Used(at(-5), at(99)), 1e-9)
	require.InDelta(t, 1, m.Used(at(1.5), at(2.5)), 1e-9)
	require.Zero(t, m.Used(at(2), at(3)))
}

// A child's time counts while it runs and after it was collected.
func TestTheMeterCountsDescendants(t *testing.T) {
	sh, err := exec.LookPath("bash")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	script := `(i=0; while ((i < 200000)); do i=$((i+1)); done); exec sleep 60`
	cmd := exec.CommandContext(ctx, sh, "-c", script, "meter-test")
	m := Watch(ctx, MeterPeriod, sh, "-c", script)
	require.NoError(t, cmd.Start())
	began := time.Now()
	require.Eventually(t, func() bool { return m.Used(began, time.Now()) > 0.1 }, time.Minute, 10*time.Millisecond)
	cancel()
	require.Error(t, cmd.Wait())
}
