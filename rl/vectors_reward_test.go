package rl

import (
	"testing"

	"github.com/ropewalk/ropewalk/rl/internal/vectors"
	"github.com/ropewalk/ropewalk/rl/reward"
)

var rewardKinds = vectors.Kinds{"reward/last_boxed": testLastBoxed}

func testLastBoxed(t *testing.T, c vectors.Case) {
	var in []string
	var want []*string
	c.Decode(t, &in, &want)
	for i, text := range in {
		got, ok := reward.LastBoxed(text)
		if ok != (want[i] != nil) || ok && got != *want[i] {
			t.Errorf("last box of %q: %q, %v", text, got, ok)
		}
	}
}
