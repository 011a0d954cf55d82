package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
)

var update = flag.Bool("update", false, "rewrite golden files")

// someGPUs are devices in every condition.
func someGPUs() *devicetest.Library {
	lib := devicetest.New(
		&devicetest.GPU{Switches: 18, Used: 20 * devicetest.GiB, Reasons: 4}, // at its power limit
		&devicetest.GPU{Switches: 18, Down: 2, RowPending: true},
		&devicetest.GPU{NUMA: 1, MIG: []devicetest.Slice{{UUID: "MIG-1", Name: "NVIDIA H200 MIG 1g.18gb",
			Total: 18 * devicetest.GiB}}},
		&devicetest.GPU{NUMA: 1, Unsupported: map[string]bool{"GetMemoryInfo_v2": true, "GetMemoryInfo": true,
			"GetUtilizationRates": true, "GetTemperature": true, "GetPowerUsage": true,
			"GetClockInfo": true, "GetPciInfo": true, "GetMemoryAffinity": true, "GetMigMode": true, "GetEccMode": true,
			"GetTotalEccErrors": true, "GetRemappedRows": true,
			"GetCurrentClocksEventReasons": true, "GetCurrentClocksThrottleReasons": true,
			"GetComputeRunningProcesses": true}},
		&devicetest.GPU{Lost: true},
	)
	lib.GPUs[0].Run(4711, 20*devicetest.GiB)
	return lib
}

// leasesIn has the command look at a folder of leases of the test's own.
func leasesIn(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "leases")
	t.Setenv(lease.DirVariable, dir)
	return dir
}

func TestGPUTable(t *testing.T) {
	dir := leasesIn(t)
	require.NoError(t, os.Mkdir(dir, 0o777))
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	mark := `{"kind":"gpu_xid_95","detail":"Xid uncontained memory error","at":"2026-01-02T03:04:05Z","boot":"` +
		strings.TrimSpace(string(boot)) + `"}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "GPU-00000003.failed"), []byte(mark), 0o644))
	var out bytes.Buffer
	con := &console{out: &out, err: io.Discard}
	require.NoError(t, showGPUs(t.Context(), con, gpuOptions{host: device.Options{Library: someGPUs()}}))
	golden.Check(t, "gpu.txt", out.String(), *update)

	out.Reset()
	con.asJSON = true
	require.NoError(t, showGPUs(t.Context(), con, gpuOptions{host: device.Options{Library: someGPUs()}}))
	var r inventory.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Equal(t, inventory.Engine{Kind: "torch", Why: "1 of 5 devices can be leased"}, r.Engine)
	require.Equal(t, "580.95.05", r.Driver.Version)
	require.Len(t, r.Devices, 5)
	require.Equal(t, device.Degraded, r.Devices[1].Health.State)
	require.Equal(t, device.Kind("gpu_xid_95"), r.Devices[3].Lease.Mark.Kind)
	require.Equal(t, device.Failed, r.Devices[4].Health.State)
	require.Equal(t, 16, r.Topology.Links[0][1])
	require.Contains(t, out.String(), `"temperature":{"gpu_celsius":61,`)
}

func TestGPUWithoutDriver(t *testing.T) {
	leasesIn(t)
	lib := devicetest.New()
	lib.NoDriver = 12 // ERROR_LIBRARY_NOT_FOUND
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		con := &console{out: &out, err: io.Discard, asJSON: asJSON}
		require.NoError(t, showGPUs(t.Context(), con, gpuOptions{host: device.Options{Library: lib}}))
		if !asJSON {
			require.Equal(t, "no NVIDIA driver: libnvidia-ml.so.1 cannot be opened: the CPU engine is chosen\n",
				out.String())
			continue
		}
		var r inventory.Report
		require.NoError(t, json.Unmarshal(out.Bytes(), &r))
		require.Equal(t, "cpu", r.Engine.Kind)
		require.Nil(t, r.Driver)
		require.NotNil(t, r.Devices)
	}
	require.NoDirExists(t, lease.Dir(), "looking leaves nothing behind")
}

// The command as it is, on this machine: whatever there is, it says so and is no error.
func TestGPUOnThisMachine(t *testing.T) {
	leasesIn(t)
	var out, errs bytes.Buffer
	require.Equal(t, exitDone, Run(t.Context(), []string{"gpu"}, &out, &errs), errs.String())
	require.Regexp(t, regexp.MustCompile(`(?m)the CPU engine is chosen$|^engine (cpu|torch): \d+ of \d+ devices`),
		out.String())
	require.Equal(t, exitBadInput, Run(t.Context(), []string{"gpu", "watc"}, &out, &errs))
	require.Contains(t, errs.String(), "did you mean watch")
}

func TestGPUWatch(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{}, &devicetest.GPU{})
	out, errs := &transcript.Transcript{}, &transcript.Transcript{}
	con := &console{out: out, err: errs, asJSON: true}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- watchGPUs(ctx, con, gpuWatchOptions{metricsOptions: metricsOptions{at: "127.0.0.1:0"},
			host: device.Options{Library: lib}})
	}()
	wait := func(what string, holds func() bool) {
		t.Helper()
		require.Eventually(t, holds, 10*time.Second, time.Millisecond, what)
	}
	wait("a line for each device", func() bool { return strings.Count(out.String(), "\n") == 2 })
	lib.Xid(1, 79)
	wait("a line for the Xid", func() bool { return strings.Count(out.String(), "\n") == 3 })
	var line gpuChange
	require.NoError(t, json.Unmarshal([]byte(strings.Split(out.String(), "\n")[2]), &line))
	require.Equal(t, 1, line.Index)
	require.Equal(t, 79, line.Xid)
	require.Equal(t, device.Healthy, line.Was)
	require.Equal(t, device.Failed, line.Health.State)
	address := regexp.MustCompile(`http://\S+`).FindString(errs.String())
	answer, err := http.Get(address)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `ropewalk_gpu_xids_total{consequence="failed",gpu="1",uuid="GPU-00000001",`+
		`xid="79"} 1`)
	cancel()
	require.NoError(t, <-ended)

	var bad badinput.Error
	nowhere := gpuWatchOptions{metricsOptions: metricsOptions{at: "nowhere"}, host: device.Options{Library: lib}}
	require.ErrorAs(t, watchGPUs(t.Context(), con, nowhere), &bad)
	none := devicetest.New()
	none.NoDriver = 12
	require.ErrorAs(t, watchGPUs(t.Context(), con, gpuWatchOptions{host: device.Options{Library: none}}), &bad)
}

func TestGPUReadmit(t *testing.T) {
	dir := leasesIn(t)
	require.NoError(t, os.Mkdir(dir, 0o777))
	mark := filepath.Join(dir, "GPU-00000001.failed")
	require.NoError(t, os.WriteFile(mark, []byte(`{}`), 0o644))
	var out bytes.Buffer
	con := &console{out: &out, err: io.Discard}
	o := device.Options{Library: devicetest.New(&devicetest.GPU{}, &devicetest.GPU{})}
	require.NoError(t, readmitGPU(con, o, "1"))
	require.NoFileExists(t, mark)
	require.Equal(t, "GPU-00000001 can be leased again\n", out.String())
	var bad badinput.Error
	require.ErrorAs(t, readmitGPU(con, o, "1"), &bad, "it has no mark")
	require.ErrorAs(t, readmitGPU(con, o, "7"), &bad, "there is no such device")
	require.NoError(t, os.WriteFile(mark, []byte(`{}`), 0o644))
	require.NoError(t, readmitGPU(con, o, "GPU-00000001"))
}
