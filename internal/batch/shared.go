package batch

// StatShared is the share of turns whose observation hides several states of their group, as "Nothing happens." may.
const StatShared = "shared_observations"

// countShared records StatShared, if the record has states.
func (e *estimation) countShared() {
	type shown struct{ group, observation string }
	states := map[shown]map[string]bool{}
	at := func(r *trainingRow) shown { return shown{r.GroupID, r.turn.seenHash} }
	known, shared := 0, 0
	for i := range e.rows {
		if r := &e.rows[i]; r.turn != nil && r.turn.paid != nil {
			if known++; states[at(r)] == nil {
				states[at(r)] = map[string]bool{}
			}
			states[at(r)][r.turn.situation] = true
		}
	}
	if known == 0 {
		return
	}
	for i := range e.rows {
		if r := &e.rows[i]; r.turn != nil && len(states[at(r)]) > 1 {
			shared++
		}
	}
	if e.stats == nil {
		e.stats = map[string]float64{}
	}
	e.stats[StatShared] = float64(shared) / float64(known)
}
