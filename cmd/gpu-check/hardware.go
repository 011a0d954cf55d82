package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

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
	var memory unix.Sysinfo_t
	var system unix.Utsname
	if err := errors.Join(unix.Sysinfo(&memory), unix.Uname(&system)); err != nil {
		return hardware{}, fmt.Errorf("describe the machine: %w", err)
	}
	out := hardware{CPU: m.CPU, Cores: runtime.NumCPU(), MemoryBytes: int64(memory.Totalram) * int64(memory.Unit),
		Kernel: unix.ByteSliceToString(system.Release[:]), GPUs: []string{}}
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

// openDriver connects to the driver. It returns nil without a driver.
func openDriver() (*device.Host, error) {
	host, err := device.Open(device.Options{})
	if errors.Is(err, device.ErrNoDriver) {
		return nil, nil
	}
	return host, err
}
