package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/policy"
)

// hardware is what the figures were measured on.
type hardware struct {
	CPU         string   `json:"cpu"`
	Cores       int      `json:"cores"`
	MemoryBytes int64    `json:"memory_bytes"`
	Kernel      string   `json:"kernel"`
	GPUs        []string `json:"gpus"`
	// GPUMemoryBytes is the memory of the first GPU; 0 if the driver does not report it.
	GPUMemoryBytes int64 `json:"gpu_memory_bytes,omitempty"`
}

func (h hardware) String() string {
	gpus := "no GPU"
	if len(h.GPUs) > 0 {
		gpus = strings.Join(h.GPUs, ", ")
	}
	return fmt.Sprintf("%s; %s, %d cores, %.0f GiB", gpus, h.CPU, h.Cores, float64(h.MemoryBytes)/(1<<30))
}

// thisHardware describes the machine; host is nil without a driver.
func thisHardware(host *device.Host) (hardware, error) {
	m := machine.Of(policy.Description{})
	out := hardware{CPU: m.CPU, Cores: runtime.NumCPU(), MemoryBytes: hostMemory(), Kernel: kernel(), GPUs: []string{}}
	if host == nil {
		return out, nil
	}
	inv, err := host.Inventory()
	if err != nil {
		return out, err
	}
	for i, d := range inv.Devices {
		out.GPUs = append(out.GPUs, d.Name)
		if i == 0 {
			out.GPUMemoryBytes = d.Memory.Total.Or(0)
		}
	}
	return out, nil
}

func kernel() string {
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return ""
	}
	var b strings.Builder
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// hostMemory is the machine's memory in bytes, or 0.
func hostMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "MemTotal:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// openDriver connects to the driver. It returns nil without a driver.
func openDriver() (*device.Host, error) {
	host, err := device.Open(device.Options{})
	if errors.Is(err, device.ErrNoDriver) {
		return nil, nil
	}
	return host, err
}
