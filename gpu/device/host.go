package device

import (
	"errors"
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// ErrNoDriver says that this host has no NVIDIA driver, which is normal: most hosts have none.
var ErrNoDriver = errors.New("no NVIDIA driver")

// Options say where to look for devices.
type Options struct {
	// Library is NVML; nil means the driver's own library, libnvidia-ml.so.1.
	Library nvml.Interface
	// Sysfs is the folder where the kernel shows the NUMA nodes of PCI devices; "" means /sys.
	Sysfs string
}

// Host is an open connection to the driver. Its methods are safe for concurrent use. The caller that opened it closes
// it, after closing its watches.
type Host struct {
	lib   nvml.Interface
	sysfs string

	mu      sync.Mutex
	symbols map[string]bool // whether the library has a function
	reading int             // reads of devices for watches that have not come back
}

// Open connects to the driver. On a host without a driver the error is ErrNoDriver with the reason.
func Open(o Options) (*Host, error) {
	if o.Library == nil {
		o.Library = nvml.New()
	}
	if o.Sysfs == "" {
		o.Sysfs = "/sys"
	}
	switch ret := o.Library.Init(); ret {
	case nvml.SUCCESS:
		return &Host{lib: o.Library, sysfs: o.Sysfs, symbols: map[string]bool{}}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("%w: libnvidia-ml.so.1 cannot be opened", ErrNoDriver)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("%w: libnvidia-ml.so.1 is there, but the kernel's driver is not loaded", ErrNoDriver)
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return nil, fmt.Errorf(
			"open NVML: the driver's library and its kernel module are of different versions; restart the machine",
		)
	default:
		return nil, fmt.Errorf("open NVML: %w", ret)
	}
}

// Close releases the driver. If a call hangs in the library, the library stays loaded until the process ends, because
// the call could still return into it.
func (h *Host) Close() error {
	h.mu.Lock()
	hangs := h.reading > 0
	h.mu.Unlock()
	if hangs {
		return nil
	}
	if ret := h.lib.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("close NVML: %w", ret)
	}
	return nil
}

// has reports whether the driver's library has a function. A call of one that it lacks would end the process.
func (h *Host) has(symbol string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.symbols[symbol]
	if !ok {
		known = h.lib.Extensions().LookupSymbol(symbol) == nil
		h.symbols[symbol] = known
	}
	return known
}

// Driver holds the driver's versions.
type Driver struct {
	Version string `json:"version"`
	NVML    string `json:"nvml"`
	CUDA    string `json:"cuda"` // the newest that the driver runs, e.g. 13.0
}

// Driver asks for the driver's versions. A version that the driver does not report stays empty.
func (h *Host) Driver() Driver {
	var d Driver
	if h.has("nvmlSystemGetDriverVersion") {
		d.Version, _ = h.lib.SystemGetDriverVersion()
	}
	if h.has("nvmlSystemGetNVMLVersion") {
		d.NVML, _ = h.lib.SystemGetNVMLVersion()
	}
	if h.has("nvmlSystemGetCudaDriverVersion") {
		if v, ret := h.lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
			d.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
		}
	}
	return d
}
