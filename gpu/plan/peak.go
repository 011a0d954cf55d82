package plan

import "strings"

// peaks are the greatest rates of dense matrix products in bfloat16 with sums in float32, in flops a second, from
// NVIDIA's data sheets, without sparsity. The first name that a device's own name holds counts.
var peaks = []struct {
	name  string
	flops float64
}{
	{"B300", 2250e12}, {"B200", 2250e12}, {"GB200", 2500e12},
	{"H200", 989e12}, {"H100 PCIe", 756e12}, {"H100 NVL", 835e12}, {"H100", 989e12}, {"GH200", 989e12},
	{"H20", 148e12}, {"A100", 312e12}, {"A800", 312e12}, {"L40S", 362e12}, {"L40", 181e12}, {"L4", 121e12},
	{"A40", 150e12}, {"A10", 125e12},
	{"RTX 6000 Ada", 364e12}, {"RTX 5090", 210e12}, {"RTX 4090", 165e12}, {"RTX 3090", 71e12},
}

// PeakFlops returns the device's peak rate in bfloat16, or 0 if its name is unknown. In float32 the engine uses no
// tensor cores, so MFU is left out there.
func PeakFlops(device string) float64 {
	for _, p := range peaks {
		if strings.Contains(device, p.name) {
			return p.flops
		}
	}
	return 0
}
