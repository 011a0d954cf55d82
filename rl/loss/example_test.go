package loss_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// The loss of CONTRIBUTING.md: the importance-weighted policy gradient, with the weight bounded from above,
//
//	ℓ = −A·min(r, Cap)
//
// In the tree it is a separate file, and one more line in loss.declarations.

var cappedRatio = loss.Declaration{
	Choice: choice.Choice{
		Name: "capped_ratio", Doc: "the plain ratio, bounded from above", Source: "CONTRIBUTING.md",
		Settings: CappedRatio{Cap: 1.5},
	},
}

// CappedRatio is −A·min(r, Cap).
type CappedRatio struct {
	Cap float64 `json:"ratio_cap" above:"1" max:"100" doc:"greatest importance ratio"`
}

func (p CappedRatio) Name() string        { return "capped_ratio" }
func (p CappedRatio) Validate() error     { return nil }
func (p CappedRatio) Inputs() loss.Inputs { return loss.Ratios }
func (p CappedRatio) Bounds() loss.Bounds { return loss.Bounds{High: p.Cap} }

func (p CappedRatio) Evaluate(b *loss.Block) {
	for t, r := range b.Ratio {
		b.Loss[t], b.Coef[t] = -b.Advantages[t]*min(r, p.Cap), 0
		if r < p.Cap {
			b.Coef[t] = b.Loss[t]
		}
	}
}

// A loss needs nothing beyond its declaration: parameters, construction and cases for tests follow from it.
func TestAddALoss(t *testing.T) {
	list := []choice.Choice{cappedRatio.Choice}
	for _, d := range loss.Declarations() {
		list = append(list, d.Choice)
	}
	field := choice.Fields(list)[0]
	if field.Name != "ratio_cap" || field.Tag.Get("default") != "1.5" ||
		field.Tag.Get("doc") != "greatest importance ratio" {
		t.Errorf("the field of recipes is %+v", field)
	}
	made, err := cappedRatio.New(choice.Params{"ratio_cap": 2.0})
	if want := (CappedRatio{Cap: 2}); err != nil || made != want {
		t.Fatalf("got %#v and %v, want %#v", made, err, want)
	}
	c, b := losstest.Declared(cappedRatio), random(rand.New(rand.NewPCG(1, 9)), 4)
	got := evaluateCase(t, c, b)
	const h = 1e-6
	for i := range b.Rows {
		for k, m := range b.Rows[i].Mask {
			x := &b.Rows[i].LogProbs[k]
			before := *x
			*x = before + h
			up := evaluateCase(t, c, b).Loss
			*x = before - h
			down := evaluateCase(t, c, b).Loss
			*x = before
			if slope := (up - down) / (2 * h); !closeTo(got.Cotangents[i][k], slope, 1e-7) {
				t.Errorf("row %d token %d (mask %d): cotangent %g, difference %g", i, k, m, got.Cotangents[i][k], slope)
			}
		}
	}
}
