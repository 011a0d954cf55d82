package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
)

func TestVisible(t *testing.T) {
	all := []device.Device{{Index: 0, UUID: "GPU-aa11"}, {Index: 1, UUID: "GPU-aa22"}, {Index: 2, UUID: ""}}
	for _, c := range []struct {
		value string
		want  []string
		err   string
	}{
		{"", []string{}, ""},
		{"-1", []string{}, ""},
		{"1,0", []string{"GPU-aa22", "GPU-aa11"}, ""},
		{" GPU-aa1 , 1", []string{"GPU-aa11", "GPU-aa22"}, ""},
		{"3", nil, `CUDA_VISIBLE_DEVICES=3: "3" names 0 of this host's 3 devices`},
		{"GPU-aa", nil, `"GPU-aa" names 2`},
		{"0,", nil, `"" names 0`},
		{"2", nil, `"2" names 1`}, // lost
		{"MIG-1", nil, `"MIG-1" names 0`},
	} {
		got, err := lease.Visible(c.value, all)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

// A pool gives out no device that its process was not given.
func TestPoolOfSomeDevices(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{}, &devicetest.GPU{}, &devicetest.GPU{RowPending: true})
	_, w := open(t, t.TempDir(), lib)
	p, err := lease.Open(w, lease.Options{Dir: t.TempDir(), Only: []string{"GPU-00000001", "GPU-00000002"}})
	require.NoError(t, err)
	defer p.Close()
	require.Len(t, p.Leasable(), 1)
	require.Equal(t, "GPU-00000001", p.Leasable()[0].UUID)
	require.Equal(t, []string{"GPU-00000001"}, take(t, p, one()).UUIDs())
	_, err = p.Take(soon(t), one())
	require.ErrorContains(t, err, "device 0: not given to this process")
	require.Len(t, p.Leasable(), 1, "also while it is leased")
}
