package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatARunMisses(t *testing.T) {
	good := outcome{Before: rate{0.03, 0.01, 0.05, 256}, After: rate{0.4, 0.34, 0.46, 256}, RLSeconds: 900}
	require.Empty(t, missed(good))
	for want, change := range map[string]func(*outcome){
		"the untouched model succeeds in 0.010": func(o *outcome) { o.Before.Success = 0.01 },
		"the untouched model succeeds in 0.700": func(o *outcome) {
			o.Before, o.After = rate{0.7, 0.6, 0.75, 256}, rate{1, 0.98, 1, 256}
		},
		"success rises by 0.200 < 0.25":    func(o *outcome) { o.After.Success = 0.23 },
		"the intervals overlap":            func(o *outcome) { o.Before.High = 0.35 },
		"255 held-out problems < 256":      func(o *outcome) { o.After.Problems = 255 },
		"1801 s of reinforcement learning": func(o *outcome) { o.RLSeconds = 1801 },
	} {
		o := good
		change(&o)
		require.Len(t, missed(o), 1, want)
		require.Contains(t, missed(o)[0], want)
	}
	require.Equal(t, "3.0% [1.0, 5.0]", good.Before.String())
}
