package torch

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/policytest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// ofRanks are the tests in whose path ranks have something to agree on; how they save, resume and clip is compared with
// one rank bit by bit or by bounds elsewhere (TestRealParityOfTwoRanksWithOne, the engine's own test_ranks).
var ofRanks = []string{
	"same inputs same bits", "forward ignores batch mates", "generation equals forward",
	"generation ignores batch mates", "gradients add up",
	"gradient direction", "discard", "non-finite gradient", "typed errors", "roles", "critic values ignore batch mates",
	"close",
}

// TestRealConformance runs the suite of every engine with one rank, and with two what ranks could make a difference to.
func TestRealConformance(t *testing.T) {
	pythontest.NeedLong(t)
	for _, c := range []struct {
		name  string
		ranks int
		only  []string
	}{{"one rank", 1, nil}, {"two ranks", 2, ofRanks}} {
		t.Run(c.name, func(t *testing.T) {
			torchPython(t)
			policytest.Run(t, policytest.Fixture{
				Open: func(t testing.TB) policy.Engine {
					e := fromPool(t, c.ranks)
					if strings.HasSuffix(t.Name(), "/close") {
						return e.Engine // Close is what is tested
					}
					return e
				},
				Dir: initialised(t, tiny, 11), Vocab: tiny.Vocab, Positions: tiny.Positions, Digest: checkpoint.Digest,
				Only: c.only,
			})
		})
	}
}
