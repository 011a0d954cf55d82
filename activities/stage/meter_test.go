package stage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
)

func TestProcessorTimeIsDividedAmongStages(t *testing.T) {
	used := 5.0 // before any stage
	m := cpuMeter{now: func() float64 { return used }, running: map[*float64]bool{}}
	first := m.begin()
	used += 2 // the first alone
	second := m.begin()
	used += 4 // both
	require.Equal(t, 4.0, first())
	used += 1 // the second alone
	require.Equal(t, 3.0, second())
	used += 7 // none
	third := m.begin()
	require.Zero(t, third())
}

func TestProcessorTimeOfThisProcess(t *testing.T) {
	end := meter.begin()
	before := processSeconds()
	for x := 0; processSeconds() < before+0.02; x++ {
	}
	require.GreaterOrEqual(t, end(), 0.02)
}

func TestDeviceUse(t *testing.T) {
	busy := 0.5
	before := policy.Usage{Trained: 100, TrainSeconds: 1, Flops: 1e9, PeakFlops: 1e10}
	after := policy.Usage{Trained: 1100, TrainSeconds: 3, Flops: 1.1e10, PeakFlops: 1e10, PeakBytes: 7, Busy: &busy}
	require.Equal(t, &api.DeviceUse{PeakBytes: 7, Utilisation: &busy, MFU: new(0.5), TokensPerSec: new(500.0)},
		deviceUse(before, after))
	require.Equal(t, &api.DeviceUse{PeakBytes: 7, Utilisation: &busy}, deviceUse(after, after), "nothing was trained")
	after.PeakFlops = 0
	require.Nil(t, deviceUse(before, after).MFU, "what the devices can do is not known")
}
