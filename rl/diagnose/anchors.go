package diagnose

// How much step-level credit GiGPO can assign (ARLArena S17–S20): the turns of a group that start from the same
// observation form an anchor group. In an anchor group of one turn the step advantage is 0. A few large anchor groups
// distinguish turns; with many single ones only the episode advantage is left. The two parts are compared by
// Σ|A_step| / Σ|A_episode| over turn rows. Departures: none.

import "fmt"

// TurnRow is one turn as GiGPO sees it.
type TurnRow struct {
	Group   string  // the prompt's
	Anchor  string  // the observation, or the first observation of its cluster
	Episode float64 // A_episode
	Step    float64 // A_step, before its weight ω
}

// Anchors gathers the turn rows of a step.
type Anchors struct {
	size          map[anchor]int
	episode, step series
}

type anchor struct{ group, observation string }

// AnchorReport holds the sizes and the ratio.
type AnchorReport struct {
	Rows, Groups  int     // turn rows and anchor groups
	Sizes         []Bin   // anchor groups by the number of their rows
	Singletons    float64 // share of anchor groups with one row
	SingletonRows float64 // share of rows that are alone in theirs
	Episode, Step float64 // means of |A_episode| and |A_step|
	StepToEpisode float64 // their ratio; 0 where every A_episode is 0
}

// Add adds turn rows. If one is refused, none is added.
func (a *Anchors) Add(rows ...TurnRow) error {
	for i, r := range rows {
		if !usable(r.Episode) || !usable(r.Step) {
			return fmt.Errorf(
				"%w: turn row %d of group %s has advantages %g and %g", ErrBadInput, i, r.Group, r.Episode, r.Step,
			)
		}
	}
	if a.size == nil {
		a.size = map[anchor]int{}
	}
	for _, r := range rows {
		a.size[anchor{r.Group, r.Anchor}]++
		a.episode.add(max(r.Episode, -r.Episode))
		a.step.add(max(r.Step, -r.Step))
	}
	return nil
}

// Merge adds another shard's rows; an anchor group may lie in several shards.
func (a *Anchors) Merge(o *Anchors) {
	if a.size == nil {
		a.size = map[anchor]int{}
	}
	for key, n := range o.size {
		a.size[key] += n
	}
	a.episode.merge(&o.episode)
	a.step.merge(&o.step)
}

// Report returns sizes and ratio.
func (a *Anchors) Report() AnchorReport {
	var sizes histogram
	for _, n := range a.size {
		sizes.add(n, 1)
	}
	out := AnchorReport{
		Rows: a.episode.N, Groups: len(a.size), Sizes: sizes.bins(),
		Singletons: share(sizes[1], len(a.size)), SingletonRows: share(sizes[1], a.episode.N),
		Episode: a.episode.Mean(), Step: a.step.Mean(),
	}
	if out.Episode != 0 {
		out.StepToEpisode = out.Step / out.Episode
	}
	return out
}
