package torch

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/policytest"
)

// TestConformance runs the suite of every engine, with one rank and with two.
func TestConformance(t *testing.T) {
	for name, ranks := range map[string]int{"one rank": 1, "two ranks": 2} {
		t.Run(name, func(t *testing.T) {
			torchPython(t)
			policytest.Run(t, policytest.Fixture{
				Open: func(t testing.TB) policy.Engine {
					e := fromPool(t, ranks)
					if strings.HasSuffix(t.Name(), "/close") {
						return e.Engine // Close is what is tested
					}
					return e
				},
				Dir: initialised(t, tiny, 11), Vocab: tiny.Vocab, Positions: tiny.Positions, Digest: checkpoint.Digest,
			})
		})
	}
}
