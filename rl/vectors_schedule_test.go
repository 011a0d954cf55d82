package rl

import (
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

var scheduleKinds = vectors.Kinds{"sched/spear": testCurriculum}

func testCurriculum(t *testing.T, c vectors.Case) {
	var in struct {
		T     float64   `json:"T"` // of both ramps, where they have none of their own
		Warm  *float64  `json:"T_warm"`
		Decay *float64  `json:"T_decay"`
		Steps []float64 `json:"t"`
	}
	var want map[string][]float64
	c.Decode(t, &in, &want)
	gamma, mu := schedule.Gamma{Horizon: int(in.T)}, schedule.Mu{Horizon: int(in.T)}
	if in.Warm != nil {
		gamma.Horizon = int(*in.Warm)
	}
	if in.Decay != nil {
		mu.Horizon = int(*in.Decay)
	}
	weights := map[string]func(int) float64{"gamma_warmup": gamma.At, "mu_decay": mu.At}
	for name, values := range want {
		weight, ok := weights[name]
		if !ok {
			t.Errorf("no test checks output %s", name)
			continue
		}
		got := make([]float64, len(in.Steps))
		for i, step := range in.Steps {
			got[i] = weight(int(step))
		}
		vectors.Equal(t, name, got, values)
	}
}
