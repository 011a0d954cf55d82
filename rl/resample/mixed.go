package resample

// OneVersion drops groups whose rows are mixed: several versions of the policy wrote their turns. It follows dynamic
// sampling, which sees all groups, and precedes every other link, so that these choose among what it leaves.
//
// Long trajectories are more likely to see a new version, so what is left is shorter than what was sampled.
type OneVersion struct{}

// Validate has nothing to report.
func (OneVersion) Validate() error { return nil }

func (OneVersion) name() string { return "no mixed groups" }

func (OneVersion) draws() bool { return false }

func (OneVersion) apply(s *step) {
	for _, g := range s.groups {
		for i := g.from; i < g.to; i++ {
			if s.rows[i].Mixed {
				s.out.dropAll(g, MixedVersions)
				break
			}
		}
	}
}

// BeforeRules returns the links of rules with one that precedes them, but for dynamic sampling, which comes first.
func BeforeRules(l Link, rules []Link) []Link {
	out := make([]Link, 0, len(rules)+1)
	if len(rules) > 0 {
		if _, dynamic := rules[0].(Rounds); dynamic {
			out, rules = append(out, rules[0]), rules[1:]
		}
	}
	return append(append(out, l), rules...)
}
