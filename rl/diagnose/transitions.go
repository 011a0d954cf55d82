package diagnose

// Transitions between actions, as a Sankey diagram draws them (SPEAR on the purposes of code; ARLArena appendix on web
// shop actions): every tool call has a label, its intent or its kind of action; the edges count how often the call of
// turn k with one label is followed by the call of turn k+1 with another. Only labels that occur more than twice over
// all turns are drawn. An edge from a label to itself is a loop, which makes long tasks fail. Departures: an edge at a
// label that is not drawn is left out; the turns before and after it are not joined.

import (
	"cmp"
	"slices"
)

// MinFrequency is how often a label must occur to be drawn.
const MinFrequency = 3

// Transitions counts labels and edges of a step.
type Transitions struct {
	nodes map[node]int
	edges map[edge]int
}

type node struct {
	turn  int
	label string
}

type edge struct {
	turn     int // of the edge's first call
	from, to string
}

// Node counts a label at a turn.
type Node struct {
	Turn  int
	Label string
	Count int
}

// Edge counts what follows a label: at Turn its first call, at Turn+1 its second.
type Edge struct {
	Turn     int
	From, To string
	Count    int
}

// TransitionReport is the diagram.
type TransitionReport struct {
	Nodes []Node  // by turn, then label
	Edges []Edge  // by turn, then labels
	Loops float64 // share of the edges that lead from a label to itself
}

// Add adds the labels of one trajectory's calls, in order.
func (t *Transitions) Add(labels ...string) {
	if t.nodes == nil {
		t.nodes, t.edges = map[node]int{}, map[edge]int{}
	}
	for k, label := range labels {
		t.nodes[node{k, label}]++
		if k > 0 {
			t.edges[edge{k - 1, labels[k-1], label}]++
		}
	}
}

// Report returns the diagram of the labels that occur at least least times; MinFrequency is the
// paper's.
func (t *Transitions) Report(least int) TransitionReport {
	frequency := map[string]int{}
	for n, count := range t.nodes {
		frequency[n.label] += count
	}
	var out TransitionReport
	for n, count := range t.nodes {
		if frequency[n.label] >= least {
			out.Nodes = append(out.Nodes, Node{n.turn, n.label, count})
		}
	}
	edges, loops := 0, 0
	for e, count := range t.edges {
		if frequency[e.from] < least || frequency[e.to] < least {
			continue
		}
		out.Edges = append(out.Edges, Edge{e.turn, e.from, e.to, count})
		edges += count
		if e.from == e.to {
			loops += count
		}
	}
	slices.SortFunc(out.Nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Label, b.Label))
	})
	slices.SortFunc(out.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	out.Loops = share(loops, edges)
	return out
}
