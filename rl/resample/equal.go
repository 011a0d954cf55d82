package resample

import "github.com/ropewalk/ropewalk/rl/choice"

var rejectEqual = Rule{
	Choice: choice.Choice{
		Name: "reject_equal", Doc: "groups whose rewards are all equal are dropped", Source: "rStar2's released code",
		Field:     "drop groups whose rewards are all equal",
		Dimension: choice.DynamicFiltering,
		Settings:  RejectEqual{},
	},
	Excludes: []Exclusion{
		{"vspo", "VSPO gives the places of such groups to others, and they would be gone already"},
		{"dynamic", "dynamic sampling keeps such groups only to fill up the last try, and they would be dropped again"},
	},
	Brief: func(any) string { return "equal rewards rejected" },
}

// RejectEqual drops groups whose rewards are all equal: their advantages are all 0.
//
// Source: rStar2-Agent section 2.2.3 (which rejects such groups before RoC), DAPO. No departures.
type RejectEqual struct{}

// Link returns the rule itself.
func (r RejectEqual) Link(Sampling) Link { return r }

// Validate has nothing to report.
func (RejectEqual) Validate() error { return nil }

func (RejectEqual) name() string { return "no equal rewards" }

func (RejectEqual) draws() bool { return false }

func (RejectEqual) apply(s *step) {
	groups, rewards := s.groupsWithRows()
	for i, g := range groups {
		if !Informative(rewards[i]) {
			s.out.dropAll(*g, ZeroVariance)
		}
	}
}

// Informative reports that a group's rewards are not all equal. No reward and one reward are not.
func Informative(rewards []float64) bool { return len(rewards) > 0 && !allEqual(rewards) }
