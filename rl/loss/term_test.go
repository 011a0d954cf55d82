package loss

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Each declared term puts the parts into the objective that its settings describe.
func TestDeclaredTerms(t *testing.T) {
	params := choice.Params{
		"sequence_mask": &SequenceMaskSettings{Delta: 0.1, Denominator: "shrink"},
		"tis":           &TIS{Cap: 3},
		"kl":            &KLSettings{Coefficient: 0.5, In: KLInLoss, Estimator: K2},
		"entropy":       0.01,
		"reference":     &ReferenceSettings{RefreshEvery: 5},
		"value":         &ValueSettings{Coefficient: 1, Clip: 0.5, LR: 1e-5},
	}
	o := Objective{Policy: PPOClip{}}
	if err := AddTerms(&o, params, Step{KL: 0.25}); err != nil {
		t.Fatal(err)
	}
	want := Objective{
		Policy: PPOClip{}, SequenceMask: &SequenceMask{Delta: 0.1, Shrink: true}, TIS: &TIS{Cap: 3},
		KL: &KL{Estimator: K2, Coefficient: 0.25}, Entropy: &Entropy{Coefficient: 0.01},
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, want %+v", o, want)
	}
	params["kl"] = &KLSettings{Coefficient: 0.5, In: KLInReward, Estimator: K1}
	if o = (Objective{}); AddTerms(&o, params, Step{}) != nil || o.KL != nil {
		t.Errorf("a penalty in the reward is in the objective: %+v", o.KL)
	}
	if n := len(Terms()); n != len(params) {
		t.Errorf("%d terms are declared, and %d are tested", n, len(params))
	}
	o = Objective{}
	if err := AddTerms(&o, nil, Step{}); err != nil || !reflect.DeepEqual(o, Objective{}) {
		t.Errorf("without terms, the objective is %+v (%v)", o, err)
	}
}

func TestAddTermsRefusesOtherSettings(t *testing.T) {
	err := AddTerms(&Objective{}, choice.Params{"tis": &ValueSettings{Clip: 1}}, Step{})
	if err == nil || !strings.Contains(err.Error(), "loss.tis: needs settings of the type loss.TIS") {
		t.Errorf("got %v", err)
	}
}

// The term of CONTRIBUTING.md: a bonus for entropy that fades. In the tree it is a separate file, and one more line
// in terms.

var fadingEntropy = Term{Choice: choice.Choice{
	Name: "fading_entropy", Doc: "− c·agg(H) in the loss, where a penalty is on", Source: "CONTRIBUTING.md",
	Field: "entropy times the coefficient of the penalty; null or absent = off", Settings: FadingEntropy{Share: 0.5},
	Needs: []choice.Need{choice.NeedCurrentEntropies},
}}

// FadingEntropy weighs the entropy with a share of the penalty's coefficient.
type FadingEntropy struct {
	Share float64 `json:"share" above:"0" max:"1" doc:"share of the coefficient"`
}

// Add puts the bonus into the objective.
func (f FadingEntropy) Add(o *Objective, s Step) { o.Entropy = &Entropy{Coefficient: f.Share * s.KL} }

// A term needs nothing beyond its declaration: its field in recipes and its part of the objective follow from it.
func TestAddALossTerm(t *testing.T) {
	field := choice.Switches([]choice.Choice{fadingEntropy.Choice})[0]
	if field.Defaults["share"] != "0.5" || field.Type != reflect.TypeFor[*FadingEntropy]() {
		t.Errorf("the field of recipes is %+v", field)
	}
	old := terms
	defer func() { terms = old }()
	terms = append(Terms(), fadingEntropy)
	o := Objective{}
	err := AddTerms(&o, choice.Params{"fading_entropy": &FadingEntropy{Share: 0.25}}, Step{KL: 0.2})
	if err != nil || o.Entropy == nil || o.Entropy.Coefficient != 0.05 {
		t.Errorf("got %+v and %v", o.Entropy, err)
	}
}
