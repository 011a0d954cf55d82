// Package machine describes what determines a run's rounding and speed, apart from its inputs.
package machine

import (
	"bufio"
	"os"
	"runtime"
	"strings"

	"github.com/ropewalk/ropewalk/policy"
)

// Machine is the hardware and numerical library that a worker computes with.
type Machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	BLAS    string `json:"blas"`
	Threads int    `json:"threads"`
	// Advice says how to get a faster library, or is empty.
	Advice string `json:"advice,omitempty"`
	// Engine describes what runs the models if it is not the CPU engine.
	Engine string `json:"engine,omitempty"`
	// Sandbox is the tier of isolation that tool calls get, or empty if none run.
	Sandbox string `json:"sandbox,omitempty"`
}

// Of returns the description of this machine and of an engine on it.
func Of(engine policy.Description) Machine {
	return Machine{CPU: cpuName(), Cores: runtime.NumCPU(), BLAS: engine.BLAS, Threads: engine.Threads,
		Advice: engine.Advice}
}

// cpuName returns the name of the processor if the system tells it, else its architecture.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
