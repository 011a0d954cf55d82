package device

import (
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/require"
)

// Each letter is a sample, 30 s after the one before: T throttled, . not. The window is 10 minutes, 20 samples.
func TestWindow(t *testing.T) {
	const step = 30 * time.Second
	for _, c := range []struct {
		name    string
		samples string
		raised  bool
		share   float64
	}{
		{"nothing seen", "", false, 0},
		{"one sample says nothing", "T", false, 0},
		{"always, for less than half of the window", "TTTTTTTTTT", false, 1},
		{"always, for half of the window", "TTTTTTTTTTT", true, 1},
		{"half of the time", ".T.T.T.T.T.T.T.T.T.T.T", true, 0.5},
		{"less than half of the time", "..T..T..T..T..T..T..T..T", false, 7.0 / 20},
		{"a short burst in the window", "..................TT", false, 2.0 / 19},
		{"raised, and still more than a quarter", "TTTTTTTTTTTTTTTTTTTT..............", true, 6.0 / 20},
		{"raised, then less than a quarter", "TTTTTTTTTTTTTTTTTTTT................", false, 4.0 / 20},
		{"long ago", "TTTTTTTTTTTTTTTTTTTT" + "....................", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := window{span: 10 * time.Minute}
			at := time.Unix(0, 0)
			for _, s := range c.samples {
				w.add(at, s == 'T')
				at = at.Add(step)
			}
			share, _ := w.share()
			require.Equal(t, c.raised, w.raised)
			require.InDelta(t, c.share, share, 1e-9)
		})
	}
}

// A machine that slept saw nothing meanwhile.
func TestWindowWithGap(t *testing.T) {
	w := window{span: 10 * time.Minute}
	at := time.Unix(0, 0)
	w.add(at, true)
	w.add(at.Add(9*time.Minute), true)
	_, seen := w.share()
	require.Zero(t, seen)
	require.False(t, w.raised)
}

func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		mask           uint64
		thermal, power bool
	}{
		{0, false, false},
		{nvml.ClocksEventReasonGpuIdle, false, false},
		{nvml.ClocksEventReasonSwPowerCap, false, false}, // hard work
		{nvml.ClocksEventReasonSwThermalSlowdown, true, false},
		{nvml.ClocksThrottleReasonHwSlowdown | nvml.ClocksThrottleReasonHwThermalSlowdown, true, false},
		{nvml.ClocksThrottleReasonHwSlowdown | nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, false, true},
		{nvml.ClocksThrottleReasonHwSlowdown, true, false},
		{nvml.ClocksEventReasonAll, true, true},
	} {
		thermal, power := throttled(clockReasons(c.mask))
		require.Equal(t, [2]bool{c.thermal, c.power}, [2]bool{thermal, power}, "%v", clockReasons(c.mask))
	}
	require.Len(t, clockReasons(nvml.ClocksEventReasonAll), len(ClockReasons), "every bit has its name")
}
