package diagnose

// How much step-level credit GiGPO can assign (ARLArena S17–S20): the turns of a group that start from the same
// observation form an anchor group. In an anchor group of one turn the step advantage is 0. A few large anchor groups
// distinguish turns; with many single ones only the episode advantage is left. Departures: the parts of the advantage
// are not compared, since a batch holds only their sum.

// Anchors counts the turns of a step by where they start. The zero value has none.
type Anchors struct {
	turns int
	size  map[anchor]int
}

type anchor struct{ group, observation string }

// AnchorReport holds the sizes.
type AnchorReport struct {
	Turns, Groups int
	Sizes         []Bin   // anchor groups by the number of their turns
	Singletons    float64 // share of anchor groups with one turn
}

// Add adds a turn of a prompt's group that starts from an observation.
func (a *Anchors) Add(group, observation string) {
	if a.size == nil {
		a.size = map[anchor]int{}
	}
	a.turns++
	a.size[anchor{group, observation}]++
}

// Report returns the sizes.
func (a *Anchors) Report() AnchorReport {
	var sizes histogram
	for _, n := range a.size {
		sizes.add(n, 1)
	}
	return AnchorReport{Turns: a.turns, Groups: len(a.size), Sizes: sizes.bins(),
		Singletons: share(sizes[1], len(a.size))}
}
