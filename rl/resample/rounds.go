package resample

import "fmt"

// Rounds selects among the groups of a step that was sampled in rounds. Each round is a batch of DynamicSampling:
// informative groups are kept until there are enough, and the last round fills a shortfall with its uniform groups.
// Source and departures: see DynamicSampling.
//
// The last round is the one with the greatest number among the rows, if that is at most Tries. If a step is
// resampled again under other settings, no further rounds can be sampled. Rounds must be the first link of a chain.
type Rounds struct {
	DynamicSampling
	Step int // counted from 0
}

// Validate reports the first bad field.
func (r Rounds) Validate() error {
	if r.Step < 0 {
		return fmt.Errorf("dynamic: the step must be ≥ 0, got %d", r.Step)
	}
	return r.DynamicSampling.Validate()
}

func (Rounds) name() string { return "dynamic sampling" }

func (r Rounds) draws() bool { return false }

func (r Rounds) apply(s *step) {
	last := 0
	for i := range s.rows {
		last = max(last, s.rows[i].Round)
	}
	groups, rewards := s.groupsWithRows()
	batches, byID := make([][]Outcome, last+1), make(map[string]*group, len(groups))
	for i, g := range groups {
		round := s.rows[g.from].Round
		batches[round] = append(batches[round], Outcome{GroupID: g.id, Informative: Informative(rewards[i])})
		byID[g.id] = g
	}
	for _, v := range r.judge(batches) {
		if !v.Kept {
			s.out.dropAll(*byID[v.GroupID], v.Reason)
		}
	}
}

// judge adds the rounds one by one. Groups that were sampled after there were enough are surplus.
func (r Rounds) judge(batches [][]Outcome) []GroupVerdict {
	d := r.DynamicSampling
	if d.Tries == 0 {
		d.Tries = defaultTries
	}
	d.Tries = min(d.Tries, len(batches))
	var all []GroupVerdict
	a := Accumulation{}
	for _, batch := range batches {
		if a.Done {
			for _, o := range batch {
				all = append(all, GroupVerdict{GroupID: o.GroupID, Reason: d.dropped(o, r.Step)})
			}
			continue
		}
		next, verdicts, err := d.Advance(a, r.Step, batch)
		if err != nil {
			panic(err) // the settings are valid and each group occurs once
		}
		a, all = next, append(all, verdicts...)
	}
	return all
}
