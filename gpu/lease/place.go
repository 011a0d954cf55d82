package lease

import (
	"slices"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// placeLimit bounds the number of candidates, because place evaluates every choice among them, up to 12,870.
const placeLimit = 16

// connections holds what placement needs to know, by the devices' positions in the inventory.
type connections struct {
	topology *device.Topology // nil with one device
	numa     []device.Reading[int64]
}

// fit is the rating of a choice of devices.
type fit struct {
	clique  bool // NVLink joins each two
	links   int  // fewest links between two, in a clique
	nodes   int  // NUMA nodes
	far     int  // greatest distance between two
	sum     int  // of all distances
	joined  int  // pairs that NVLink joins
	severed int  // pairs that it joins of a device taken and one left: what a later lease would miss
}

// better compares two ratings from the most important criterion to the least important.
func (f fit) better(g fit) bool {
	if f.clique != g.clique {
		return f.clique
	}
	for _, d := range [][2]int{{g.links, f.links}, {f.nodes, g.nodes}, {f.far, g.far}, {f.sum, g.sum},
		{g.joined, f.joined}, {f.severed, g.severed}} {
		if d[0] != d[1] {
			return d[0] < d[1]
		}
	}
	return false
}

// place chooses n of the candidates. The candidates are positions in ascending order, and there are at least n. Among
// equal choices, the first in the order of positions wins, so the same candidates always give the same devices.
func place(candidates []int, n int, c connections) []int {
	if len(candidates) > max(placeLimit, n) {
		candidates = candidates[:max(placeLimit, n)]
	}
	if n == len(candidates) {
		return candidates
	}
	var best []int
	var bestFit fit
	chosen := make([]int, 0, n)
	var choose func(from int)
	choose = func(from int) {
		if len(chosen) == n {
			if f := c.weigh(chosen, candidates); best == nil || f.better(bestFit) {
				best, bestFit = slices.Clone(chosen), f
			}
			return
		}
		for i := from; i <= len(candidates)-(n-len(chosen)); i++ {
			chosen = append(chosen, candidates[i])
			choose(i + 1)
			chosen = chosen[:len(chosen)-1]
		}
	}
	choose(0)
	return best
}

func (c connections) weigh(chosen, candidates []int) fit {
	f := fit{clique: true}
	nodes := map[int64]bool{}
	for i, a := range chosen {
		nodes[c.numa[a].Or(-1)] = true
		for _, b := range chosen[i+1:] {
			links, distance := c.between(a, b)
			f.far, f.sum = max(f.far, distance), f.sum+distance
			if links == 0 {
				f.clique = false
				continue
			}
			f.joined++
			if f.links == 0 || links < f.links {
				f.links = links
			}
		}
		for _, b := range candidates {
			if links, _ := c.between(a, b); links > 0 && !slices.Contains(chosen, b) {
				f.severed++
			}
		}
	}
	f.nodes = len(nodes)
	if !f.clique {
		f.links = 0
	}
	return f
}

func (c connections) between(a, b int) (links, distance int) {
	if c.topology == nil {
		return 0, 0
	}
	return c.topology.Links[a][b], c.topology.Paths[a][b].Distance()
}
