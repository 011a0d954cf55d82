package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Goals that are missed make the command fail.
func TestGoals(t *testing.T) {
	good := result{Ratio: 1.1, Static: 1.3, Least: 1, Million: million{Rollouts: 1, Seconds: 60}}
	require.NoError(t, good.missed())
	for want, change := range map[string]func(*result){
		"the median over the bound is 1.110 > 1.10":                      func(r *result) { r.Ratio = 1.11 },
		"static allocation takes 1.20 < 1.3 times as long in the median": func(r *result) { r.Static = 1.2 },
		"static allocation takes 0.90 < 1 times as long on one workload": func(r *result) { r.Least = 0.9 },
		"2 evictions":               func(r *result) { r.Evictions = 2 },
		"1 rollouts took 61 s > 60": func(r *result) { r.Million.Seconds = 61 },
	} {
		r := good
		change(&r)
		require.EqualError(t, r.missed(), "goal missed: "+want)
	}
}
