package advantage

import "fmt"

// Anchor groups of GiGPO (Feng et al. 2025; ARLArena eq S16): the turns of one group that met the same
// state, to be compared with each other.
//
//	exact    observations that are equal
//	similar  in canonical order, a turn joins the first cluster whose first member's observation b
//	         has ratio(a, b) ≥ Similarity with its own, a; else it opens a cluster
//
// Departures: the released search takes the rows as they come; here they come by trajectory and
// turn, as similarity to the first member depends on who is first. Upper bounds skip what cannot
// reach the threshold, and an observation met before is not compared again; neither changes a
// cluster.

// Anchors says when two observations of a group are the same state.
type Anchors struct {
	Similarity        float64           // least ratio, in (0, 1); 0: exact equality
	RatcliffObershelp RatcliffObershelp // the ratio
}

// DefaultSimilarity is the threshold of GiGPO's released code.
const DefaultSimilarity = 0.95

// Validate reports the first bad field.
func (a Anchors) Validate() error {
	if !(a.Similarity >= 0 && a.Similarity < 1) {
		return fmt.Errorf("similarity must be in (0, 1), or 0 for equality, got %g", a.Similarity)
	}
	return nil
}

// assign numbers the anchor group of each row, by first appearance in canonical order, and returns
// how many there are.
func (a Anchors) assign(o order, observation func(int) string) (ids []int, n int) {
	ids = make([]int, len(o.rows))
	for g := range len(o.groups) - 1 {
		find := a.finder()
		from := n
		for _, i := range o.group(g) {
			cluster := from + find(observation(i))
			ids[i], n = cluster, max(n, cluster+1)
		}
	}
	return ids, n
}

// finder returns a function that numbers one group's observations from 0.
func (a Anchors) finder() func(observation string) int {
	known := map[string]int{}
	next := func(observation string) int { return len(known) }
	if a.Similarity > 0 {
		next = newClusters(a).find
	}
	return func(observation string) int {
		k, ok := known[observation]
		if !ok {
			k = next(observation)
			known[observation] = k
		}
		return k
	}
}

// clusters is the state of the search for similar observations.
type clusters struct {
	threshold float64
	matcher   *matcher
	first     []*text // of each cluster
}

func newClusters(a Anchors) *clusters {
	return &clusters{threshold: a.Similarity, matcher: newMatcher(a.RatcliffObershelp)}
}

// find returns the observation's cluster. Asked twice for one observation it would say the same:
// clusters are only added behind the one it joined, and a text has ratio 1 with itself.
func (c *clusters) find(observation string) int {
	t := c.matcher.read(observation)
	for k, first := range c.first {
		if c.matcher.reaches(t, first, c.threshold) {
			return k
		}
	}
	c.first = append(c.first, t)
	return len(c.first) - 1
}
