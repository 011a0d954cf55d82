package stage

import (
	"testing"

	"github.com/stretchr/testify/require"
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
