package advantage

import "github.com/ropewalk/ropewalk/rl/choice"

// Anchor groups of GiGPO (Feng et al. 2025; ARLArena eq S16): the turns of one group that met the same
// state. They are compared with each other.
//
//	exact    the observations are equal
//	similar  in canonical order, a turn with observation a joins the first cluster whose first member's
//	         observation b has ratio(a, b) ≥ Similarity; if there is none, it starts a cluster
//
// Departures: the released search takes the rows in the order in which they come. Here they come by
// trajectory and turn, because a cluster depends on its first member. Upper bounds skip pairs that cannot
// reach the threshold, and an observation that was seen before is not compared again. Neither changes a
// cluster.

// Anchors says when two observations of a group are the same state.
type Anchors struct {
	Similarity        float64           `min:"0" below:"1"` // least ratio, in (0, 1); 0: exact equality
	RatcliffObershelp RatcliffObershelp // the ratio
}

// DefaultSimilarity is the threshold of GiGPO's released code.
const DefaultSimilarity = 0.95

// Validate reports the first bad field.
func (a Anchors) Validate() error { return choice.Check("", a) }

// assign returns the number of each row's anchor group, by first appearance in canonical order, and how many
// anchor groups there are.
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

// find returns the observation's cluster. A second call with the same observation would return the same cluster:
// later clusters come after it in the search, and a text has ratio 1 with itself.
func (c *clusters) find(observation string) int {
	t := c.matcher.encode(observation)
	for k, first := range c.first {
		if c.matcher.ratioAtLeast(t, first, c.threshold) {
			return k
		}
	}
	c.first = append(c.first, t)
	return len(c.first) - 1
}
