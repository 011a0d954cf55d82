package inventory_test

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
)

var update = flag.Bool("update", false, "rewrite golden files")

// scrape is what Prometheus reads of the devices.
func scrape(t *testing.T, c *inventory.Collector) string {
	t.Helper()
	w := httptest.NewRecorder()
	inventory.Handler(c).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	lines := slices.DeleteFunc(
		strings.Split(string(text), "\n"), func(l string) bool { return !strings.HasPrefix(l, "ropewalk_gpu_") },
	)
	return strings.Join(lines, "\n") + "\n"
}

func TestScrape(t *testing.T) {
	lib := devicetest.New(
		&devicetest.GPU{
			Switches: 18, Reasons: nvml.ClocksEventReasonSwPowerCap, Processes: []nvml.ProcessInfo{{Pid: 1}},
		},
		&devicetest.GPU{
			RowPending: true, Unsupported: map[string]bool{"GetPowerUsage": true, "GetTotalEccErrors": true},
		},
		&devicetest.GPU{Lost: true},
	)
	h, err := device.Open(device.Options{Library: lib})
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	w, err := h.Watch(device.WatchOptions{Clock: devicetest.NewClock(), Log: quiet})
	require.NoError(t, err)
	defer w.Close()
	p, err := lease.Open(w, lease.Options{Dir: t.TempDir(), Log: quiet})
	require.NoError(t, err)
	defer p.Close()
	c := inventory.NewCollector(w, p)

	l, err := p.Take(t.Context(), lease.Request{Devices: 1})
	require.NoError(t, err)
	defer l.Release()
	lib.Xid(0, 13)
	lib.Xid(0, 79)
	<-l.Failed()
	require.NoError(t, w.Poll(context.Background()))
	golden.Check(t, "metrics.txt", scrape(t, c), *update)

	withoutPool := scrape(t, inventory.NewCollector(w, nil))
	require.NotContains(t, withoutPool, "lease")
	require.Contains(t, withoutPool, "ropewalk_gpu_devices 3")
}

// What is sent was described, so that a registry that checks it takes it.
func TestDescribed(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{})
	h, err := device.Open(device.Options{Library: lib})
	require.NoError(t, err)
	w, err := h.Watch(device.WatchOptions{Clock: devicetest.NewClock(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer w.Close()
	lib.Xid(0, 94)
	require.Eventually(t, func() bool { return len(w.Status()[0].Xids) == 1 }, 10*time.Second, time.Millisecond)
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(inventory.NewCollector(w, nil)))
	families, err := r.Gather()
	require.NoError(t, err)
	require.Greater(t, len(families), 20)
}
