package resample

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
)

// Each declared rule makes the link that its settings describe, in the order of the chain.
func TestDeclaredRules(t *testing.T) {
	params := choice.Params{
		"roc":          &RoC{Keep: 4, Counts: CountsRelease, Choice: ChooseLowest, MinPositive: 1, MinNegative: 1},
		"vspo":         &VSPO{Alpha: 3, Temperature: 0.2, MinVariance: 1e-5},
		"low_variance": &LowVariance{Keep: 0.5, Deviation: PopulationDeviation, Reverse: true},
		"reject_equal": true,
		"dynamic":      &DynamicSampling{Tries: 2, ColdStart: 1, Refill: RefillSame},
	}
	s := Sampling{Groups: 7, Step: 3}
	rounds := Rounds{DynamicSampling{Target: 7, Tries: 2, ColdStart: 1, Refill: RefillSame}, 3}
	roc := RoC{Keep: 4, Counts: CountsRelease, Choice: ChooseLowest, MinPositive: 1, MinNegative: 1, KeepEqual: true}
	want := []Link{
		rounds, RejectEqual{}, LowVariance{Keep: 0.5, Deviation: PopulationDeviation, Reverse: true},
		ValueResampling{advantage.VSPO{Alpha: 3, Temperature: 0.2, MinVariance: 1e-5}}, roc,
	}
	if got := Links(params, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	delete(params, "dynamic")
	roc.KeepEqual = false
	if got := Links(params, s); !reflect.DeepEqual(got[3], roc) {
		t.Errorf("without dynamic sampling, RoC is %+v", got[3])
	}
	if got := Links(choice.Params{"reject_equal": false, "roc": (*RoC)(nil)}, s); len(got) != 0 {
		t.Errorf("switched off, the chain is %v", got)
	}
	if n := len(Rules()); n != len(want) {
		t.Errorf("%d rules are declared, and %d are tested", n, len(want))
	}
}

// The defaults that a rule declares are valid, apart from those that a recipe must set.
func TestRulesDeclareValidDefaults(t *testing.T) {
	for _, r := range Rules() {
		settings := r.Settings
		if roc, ok := settings.(RoC); ok {
			roc.Keep = 4 // required
			settings = roc
		}
		l, ok := settings.(Linker)
		if !ok {
			t.Errorf("%s: its settings %T make no link", r.Name, settings)
			continue
		}
		if err := l.Link(Sampling{Groups: 1}).Validate(); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		for _, e := range r.Excludes {
			if _, ok := choice.Declared(rules, e.Rule); !ok || e.Why == "" {
				t.Errorf("%s excludes %s (%s)", r.Name, e.Rule, e.Why)
			}
		}
	}
}

func TestLinksReportOtherSettings(t *testing.T) {
	for want, params := range map[string]choice.Params{
		"resample.roc: needs settings of the type resample.RoC, got *resample.VSPO": {"roc": &VSPO{}},
		"resample.reject_equal: needs settings of the type resample.RejectEqual":    {"reject_equal": &RoC{}},
	} {
		_, err := Chain{Links: Links(params, Sampling{})}.Select(nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	params := choice.Params{
		"dynamic": &DynamicSampling{Tries: 2}, "reject_equal": true, "low_variance": &LowVariance{Keep: 0.75},
		"vspo": &VSPO{}, "roc": &RoC{Keep: 8},
	}
	var got []string
	for _, r := range Rules() {
		got = append(got, r.Describe(params))
		if off := r.Describe(nil); off != "" {
			t.Errorf("%s is off and is described as %q", r.Name, off)
		}
	}
	want := "dynamic, 2 tries; equal rewards rejected; most varied 0.75; VSPO; RoC 8"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// The rule of CONTRIBUTING.md: only the groups with the greatest mean rewards. In the tree it is a separate file, and
// one more line in rules.

var bestGroups = Rule{
	Choice: choice.Choice{
		Name: "best_groups", Doc: "groups with a low mean reward are dropped", Source: "CONTRIBUTING.md",
		Field:    "keep the groups with a high mean reward; null or absent = off",
		Settings: BestGroups{Mean: 0.5},
	},
}

// BestGroups drops groups whose mean reward is below Mean.
type BestGroups struct {
	Mean float64 `json:"mean" min:"0" max:"1" doc:"least mean reward of a group"`
}

// Link returns the rule itself.
func (b BestGroups) Link(Sampling) Link { return b }

// Validate has nothing to report.
func (BestGroups) Validate() error { return nil }

func (BestGroups) name() string { return "best groups" }
func (BestGroups) draws() bool  { return false }

func (b BestGroups) apply(s *step) {
	groups, rewards := s.groupsWithRows()
	for i, g := range groups {
		if mean, _ := advantage.Moments(rewards[i]); mean < b.Mean {
			s.out.dropAll(*g, "low_mean")
		}
	}
}

// A rule needs nothing beyond its declaration: its field in recipes, its link and its words follow from it.
func TestAddAResamplingRule(t *testing.T) {
	field := choice.Switches([]choice.Choice{bestGroups.Choice})[0]
	if field.Defaults["mean"] != "0.5" || field.Type != reflect.TypeFor[*BestGroups]() {
		t.Errorf("the field of recipes is %+v", field)
	}
	old := rules
	defer func() { rules = old }()
	rules = append(Rules(), bestGroups)
	params := choice.Params{"best_groups": &BestGroups{Mean: 0.4}}
	out, err := Chain{Links: Links(params, Sampling{})}.Select(append(rowsOf("a", "+-"), rowsOf("b", "--")...))
	if err != nil {
		t.Fatal(err)
	}
	if out.KeptGroups != 1 || out.DroppedBy["low_mean"] != 2 || !out.Rows[0].Kept {
		t.Errorf("got %+v", out)
	}
	if got := bestGroups.Describe(params); got != "best_groups" {
		t.Errorf("it is described as %q", got)
	}
}
