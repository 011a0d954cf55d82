package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// host builds connections: numa by device, and what joins pairs; other pairs are NODE or SYS by their NUMA nodes.
func host(numa []int64, links map[[2]int]int, paths map[[2]int]device.Path) connections {
	n := len(numa)
	c := connections{topology: &device.Topology{}}
	for a := range n {
		c.numa = append(c.numa, device.Some(numa[a]))
		c.topology.Links, c.topology.Paths = append(c.topology.Links, make([]int, n)), append(
			c.topology.Paths, make([]device.Path, n),
		)
		for b := range n {
			pair := [2]int{min(a, b), max(a, b)}
			c.topology.Links[a][b] = links[pair]
			switch path, ok := paths[pair]; {
			case a == b:
				c.topology.Paths[a][b] = device.PathSelf
			case ok:
				c.topology.Paths[a][b] = path
			case numa[a] == numa[b]:
				c.topology.Paths[a][b] = device.PathNode
			default:
				c.topology.Paths[a][b] = device.PathSystem
			}
		}
	}
	return c
}

// cliques joins each two devices of each group.
func cliques(links int, groups ...[]int) map[[2]int]int {
	out := map[[2]int]int{}
	for _, g := range groups {
		for i, a := range g {
			for _, b := range g[i+1:] {
				out[[2]int{a, b}] = links
			}
		}
	}
	return out
}

func TestPlace(t *testing.T) {
	eight := []int64{0, 0, 0, 0, 1, 1, 1, 1}
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	switched := host(eight, cliques(18, all), nil)
	cubes := host(eight, cliques(2, []int{0, 1, 2, 3}, []int{4, 5, 6, 7}), nil)
	// Bridges join pairs across NUMA nodes.
	bridged := host([]int64{0, 0, 1, 1}, cliques(4, []int{0, 2}, []int{1, 3}), nil)
	uneven := host([]int64{0, 0, 0, 0}, map[[2]int]int{{0, 1}: 1, {0, 2}: 1, {1, 2}: 1, {2, 3}: 2}, nil)
	pcie := host(
		eight, nil,
		map[[2]int]device.Path{
			{2, 3}: device.PathSwitch, {4, 5}: device.PathSwitch, {4, 6}: device.PathBridges,
			{5, 6}: device.PathBridges,
		},
	)
	none := host([]int64{0}, nil, nil)
	none.topology = nil
	for _, c := range []struct {
		name       string
		candidates []int
		n          int
		c          connections
		want       []int
	}{
		{"the only one", []int{0}, 1, none, []int{0}},
		{"all", all, 8, switched, all},
		{"over switches the first of one node", all, 4, switched, []int{0, 1, 2, 3}},
		{"over switches, one node is short", []int{1, 3, 4, 5, 6, 7}, 4, switched, []int{4, 5, 6, 7}},
		{"over switches, both are short", []int{1, 2, 3, 5, 6, 7}, 4, switched, []int{1, 2, 3, 5}},
		{"a clique before the first ones", []int{1, 2, 3, 4, 5, 6, 7}, 4, cubes, []int{4, 5, 6, 7}},
		{"the smaller clique, so that the larger stays", []int{0, 1, 2, 3, 4, 5, 6}, 2, cubes, []int{4, 5}},
		{"one device, of the clique that is broken already", []int{0, 1, 2, 3, 5, 6}, 1, cubes, []int{5}},
		{"no clique left: one node", []int{0, 1, 4, 5, 6}, 4, cubes, []int{0, 4, 5, 6}},
		{"a bridge before a node", []int{0, 1, 2, 3}, 2, bridged, []int{0, 2}},
		{"no bridge left: a node", []int{0, 1, 3}, 2, host([]int64{0, 0, 1, 1}, nil, nil), []int{0, 1}},
		{"more links", []int{0, 1, 2, 3}, 2, uneven, []int{2, 3}},
		{"a clique of three before more links of two", []int{0, 1, 2, 3}, 3, uneven, []int{0, 1, 2}},
		{"the nearest over PCIe", all, 2, pcie, []int{2, 3}},
		{"three over PCIe", all, 3, pcie, []int{4, 5, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, place(c.candidates, c.n, c.c))
		})
	}
}

// However many devices a host lists, a choice is made soon.
func TestPlaceOnLargeHosts(t *testing.T) {
	numa := make([]int64, 64)
	candidates := make([]int, 64)
	for i := range candidates {
		candidates[i] = i
	}
	c := host(numa, nil, nil)
	require.Len(t, place(candidates, 10, c), 10)
	require.Equal(t, candidates[:40], place(candidates, 40, c))
}
