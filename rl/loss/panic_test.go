package loss_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// exploding is a loss with a fault.
type exploding struct{ CappedRatio }

func (exploding) Evaluate(b *loss.Block) { b.Loss[len(b.Loss)] = 0 }

// A loss that panics in one of several workers panics in the goroutine of its caller, who can recover it.
func TestAPanicInALossReachesItsCaller(t *testing.T) {
	b := random(rand.New(rand.NewPCG(1, 9)), 4)
	err := rescue.Do(func() error {
		o := loss.Objective{Policy: exploding{}, Aggregation: loss.Aggregation{Mode: loss.TokenMean}}
		plan, err := loss.Prepare(o, b.Rows, nil)
		if err != nil {
			return err
		}
		_, err = (&loss.Evaluator[float64]{Workers: 3}).Evaluate(o, b.Rows, plan)
		return err
	})
	if stack := rescue.Stack(err); !strings.Contains(stack, "exploding") {
		t.Fatalf("got %v, with the stack %q", err, stack)
	}
}
