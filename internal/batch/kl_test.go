package batch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/rl/loss"
)

func TestWhereTheCoefficientComesFrom(t *testing.T) {
	kl := func(in, controller string) *loss.KLSettings {
		return &loss.KLSettings{Coefficient: 0.5, In: in, Controller: controller}
	}
	for name, c := range map[string]struct {
		kl      *loss.KLSettings
		step    int
		beta    float64
		adapted bool
	}{
		"no penalty":             {nil, 3, 0, false},
		"fixed, in the loss":     {kl("loss", "fixed"), 3, 0, false},
		"fixed, in the reward":   {kl("reward", "fixed"), 3, 0.5, false},
		"adaptive, first step":   {kl("loss", "adaptive"), 1, 0.5, false},
		"adaptive, second step":  {kl("loss", "adaptive"), 2, 0.5, true},
		"adaptive in the reward": {kl("reward", "adaptive"), 2, 0.5, true},
	} {
		beta, adapted := StartKL(c.kl, c.step)
		require.Equal(t, c.beta, beta, name)
		require.Equal(t, c.adapted, adapted, name)
	}

	_, found, err := NextKL(map[string]float64{"rows": 1})
	require.NoError(t, err)
	require.False(t, found, "the previous step ran under another recipe")
	beta, found, err := NextKL(map[string]float64{statKLCoefficientTo: 0.7})
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 0.7, beta)
	var refused *refusal.Error
	_, _, err = NextKL(map[string]float64{statKLCoefficientTo: -1})
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "the batch records -1 as the next coefficient of loss.kl")

	for controller, want := range map[string]float64{"fixed": 0.5, "adaptive": 0.3} {
		beta, err := UpdateKL(kl("loss", controller), map[string]float64{statKLCoefficient: 0.3})
		require.NoError(t, err)
		require.Equal(t, want, beta)
	}
	beta, err = UpdateKL(kl("reward", "adaptive"), nil)
	require.NoError(t, err)
	require.Zero(t, beta, "the update has no such term")
	_, err = UpdateKL(kl("loss", "adaptive"), nil)
	require.ErrorAs(t, err, &refused)
}
