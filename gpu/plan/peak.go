package plan

import "strings"

// Part is what a data sheet says of a kind of device.
type Part struct {
	Name string // a piece of the driver's name for the device
	// Flops is the greatest rate of dense matrix products in bfloat16 with sums in float32, in flops a second, without
	// sparsity; 0 = unknown.
	Flops float64
	// Bandwidth is the greatest rate of reading the device's memory, in bytes a second; 0 = unknown.
	Bandwidth float64
	// Memory is the memory that the driver reports as total, rounded down to GiB, in bytes; 0 = unknown.
	Memory int64
}

const gib = 1 << 30

// parts are from NVIDIA's data sheets. The first name that a device's own name holds counts.
var parts = []Part{
	{"B300", 2250e12, 8e12, 0}, {"GB200", 2500e12, 8e12, 0}, {"B200", 2250e12, 8e12, 178 * gib},
	{"GH200", 989e12, 4e12, 94 * gib}, {"H200", 989e12, 4.8e12, 140 * gib},
	{"H100 PCIe", 756e12, 2e12, 79 * gib}, {"H100 NVL", 835e12, 3.9e12, 93 * gib}, {"H100", 989e12, 3.35e12, 79 * gib},
	{"H20", 148e12, 4e12, 95 * gib},
	{"A100-SXM4-40GB", 312e12, 1.555e12, 39 * gib}, {"A100-PCIE-40GB", 312e12, 1.555e12, 39 * gib},
	{"A100 80GB PCIe", 312e12, 1.935e12, 79 * gib}, {"A100", 312e12, 2.039e12, 79 * gib},
	{"A800", 312e12, 2.039e12, 79 * gib},
	{"L40S", 362e12, 864e9, 44 * gib}, {"L40", 181e12, 864e9, 44 * gib}, {"L4", 121e12, 300e9, 22 * gib},
	{"A40", 150e12, 696e9, 44 * gib}, {"A10", 125e12, 600e9, 22 * gib},
	{"RTX 6000 Ada", 364e12, 960e9, 47 * gib}, {"RTX 5090", 210e12, 1.792e12, 31 * gib},
	{"RTX 4090", 165e12, 1.008e12, 23 * gib}, {"RTX 3090", 71e12, 936e9, 23 * gib},
}

// PartOf returns the part of a device by its driver's name; ok is false if it is unknown.
func PartOf(device string) (p Part, ok bool) {
	for _, p := range parts {
		if strings.Contains(device, p.Name) {
			return p, true
		}
	}
	return Part{}, false
}

// PeakFlops returns the device's peak rate in bfloat16, or 0 if its name is unknown. In float32 the engine uses no
// tensor cores, so MFU is left out there.
func PeakFlops(device string) float64 {
	p, _ := PartOf(device)
	return p.Flops
}
