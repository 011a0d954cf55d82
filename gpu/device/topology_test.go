package device_test

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
)

func TestTopology(t *testing.T) {
	switched := func() *devicetest.GPU { return &devicetest.GPU{Switches: 18} }
	for _, c := range []struct {
		name string
		gpus []*devicetest.GPU
		want [][]string // as nvidia-smi topo writes it
	}{
		{"one device", []*devicetest.GPU{{}}, nil},
		{"two over switches", []*devicetest.GPU{switched(), switched()}, [][]string{{"X", "NV18"}, {"NV18", "X"}}},
		{
			"one with links down", []*devicetest.GPU{switched(), {Switches: 18, Down: 2}},
			[][]string{{"X", "NV16"}, {"NV16", "X"}},
		},
		{"two bridged, one apart", []*devicetest.GPU{
			{
				Peers: map[int]int{1: 4},
				Near:  map[int]nvml.GpuTopologyLevel{1: nvml.TOPOLOGY_HOSTBRIDGE, 2: nvml.TOPOLOGY_SYSTEM},
			},
			{Peers: map[int]int{0: 4}, NUMA: 0}, {NUMA: 1},
		}, [][]string{{"X", "NV4", "SYS"}, {"NV4", "X", "SYS"}, {"SYS", "SYS", "X"}}},
		{"no link", []*devicetest.GPU{
			{Near: map[int]nvml.GpuTopologyLevel{1: nvml.TOPOLOGY_SINGLE, 2: nvml.TOPOLOGY_MULTIPLE}}, {}, {},
		},
			[][]string{{"X", "PIX", "PXB"}, {"PIX", "X", "NODE"}, {"PXB", "NODE", "X"}}},
		{"links that nothing is known of but that they join", []*devicetest.GPU{
			{
				Switches: 4, Unsupported: map[string]bool{"GetNvLinkState": true},
			}, {Switches: 4, Unsupported: map[string]bool{"GetNvLinkState": true}},
		}, [][]string{{"X", "NV1"}, {"NV1", "X"}}},
		{"one lost", []*devicetest.GPU{switched(), {Lost: true}}, [][]string{{"X", "?"}, {"?", "X"}}},
		{"a driver that tells nothing", []*devicetest.GPU{
			{Unsupported: map[string]bool{"GetTopologyCommonAncestor": true, "GetP2PStatus": true}}, {},
		}, [][]string{{"X", "?"}, {"?", "X"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, err := open(t, devicetest.New(c.gpus...)).Inventory()
			require.NoError(t, err)
			if c.want == nil {
				require.Nil(t, inv.Topology)
				return
			}
			var got [][]string
			for a := range c.gpus {
				var row []string
				for b := range c.gpus {
					row = append(row, inv.Topology.Name(a, b))
				}
				got = append(got, row)
			}
			require.Equal(t, c.want, got)
		})
	}
	require.Less(t, device.PathSystem.Distance(), device.PathUnknown.Distance())
}
