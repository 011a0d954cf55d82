package sandbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPresets(t *testing.T) {
	for _, p := range append(Presets(), DefaultPreset) {
		require.NoError(t, Call{Limits: p.Limits}.Validate(), p.Name)
		require.GreaterOrEqual(t, p.Limits.Wall, 10*p.Limits.CPU, p.Name)
		require.Positive(t, p.QueueLife, p.Name)
		require.Positive(t, p.Batch, p.Name)
		found, err := PresetOf(p.Name)
		require.NoError(t, err)
		require.Equal(t, p, found)
	}
	_, err := PresetOf("rstar3")
	require.EqualError(t, err, `preset "rstar3" is not one of default, rstar2, simpletir, spear`)
	none, err := PresetOf("")
	require.NoError(t, err)
	require.Equal(t, DefaultPreset, none)
}

func TestPresetFillsOnlyWhatIsMissing(t *testing.T) {
	p, err := PresetOf("rstar2")
	require.NoError(t, err)
	for _, tt := range []struct {
		name     string
		in, want Limits
	}{
		{"nothing is set", Limits{}, Limits{10 * time.Second, 100 * time.Second, 384 << 20, 64 << 10,
			DefaultLimits.FileBytes, DefaultLimits.Processes}},
		{"CPU is set, and wall follows", Limits{CPU: time.Second},
			Limits{time.Second, 10 * time.Second, 384 << 20, 64 << 10, DefaultLimits.FileBytes,
				DefaultLimits.Processes}},
		{"wall is set", Limits{Wall: 7 * time.Second},
			Limits{10 * time.Second, 7 * time.Second, 384 << 20, 64 << 10, DefaultLimits.FileBytes,
				DefaultLimits.Processes}},
		{"all is set", Limits{1, 2, 3, 4, 5, 6}, Limits{1, 2, 3, 4, 5, 6}},
	} {
		require.Equal(t, tt.want, p.Over(tt.in), tt.name)
	}
}
