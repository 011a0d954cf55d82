package resample

// RejectEqual drops groups whose rewards are all equal: their advantages are all 0.
//
// Source: rStar2-Agent section 2.2.2 (which rejects such groups before RoC), DAPO. No departures.
type RejectEqual struct{}

// Validate has nothing to report.
func (RejectEqual) Validate() error { return nil }

func (RejectEqual) name() string { return "no equal rewards" }

func (RejectEqual) draws() bool { return false }

func (RejectEqual) apply(s *step) {
	groups, rewards := s.alive()
	for i, g := range groups {
		if !Informative(rewards[i]) {
			s.out.dropAll(*g, ZeroVariance)
		}
	}
}

// Informative reports that a group's rewards are not all equal. No reward and one reward are not.
func Informative(rewards []float64) bool { return len(rewards) > 0 && !equal(rewards) }

// InformativeCounts is DAPO's criterion on outcomes: 0 < correct < samples.
func InformativeCounts(correct, samples int) bool { return 0 < correct && correct < samples }
