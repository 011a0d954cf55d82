package rl

import (
	"maps"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
)

// TestVectors holds every function against the vectors that an independent implementation made.
func TestVectors(t *testing.T) {
	all := vectors.Kinds{}
	for _, area := range []vectors.Kinds{advantageKinds, diagnoseKinds, lossKinds, resampleKinds, rewardKinds,
		rolloutKinds, scheduleKinds} {
		for kind := range area {
			if all[kind] != nil {
				t.Errorf("kind %s is checked twice", kind)
			}
		}
		maps.Copy(all, area)
	}
	vectors.Run(t, all)
}
