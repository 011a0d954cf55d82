package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/policy"
)

// outcome is the end of a part, with its figures.
type outcome struct {
	bench.Outcome
	At     time.Time   `json:"at"`
	Commit string      `json:"commit"`
	Rows   []bench.Row `json:"rows,omitempty"`
}

// newOutcome is the outcome of a part that begins now.
func newOutcome() outcome {
	return outcome{At: time.Now().UTC().Truncate(time.Second), Commit: commit}
}

// report is the JSON object: what the parts were measured on, and the parts by name.
type report struct {
	head
	Parts map[string]outcome `json:"parts"`

	file string
	ran  []string // in this run
}

// head is what the parts have in common. In a file of several runs it is that of the last run.
type head struct {
	Program  string            `json:"program"`
	Commit   string            `json:"commit"`
	Device   string            `json:"device"`
	Short    bool              `json:"short"`
	Machine  hardware          `json:"machine"`
	Versions map[string]string `json:"versions"`
}

// openReport begins a report with the parts that its file already holds.
func openReport(o options) (*report, error) {
	r := &report{file: o.out, Parts: map[string]outcome{}}
	text, err := os.ReadFile(o.out)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil && (json.Unmarshal(text, r) != nil || r.Program != "gpu-check" || r.Parts == nil) {
		err = fmt.Errorf("-o: %s is there and holds something else", o.out)
	}
	return r, err
}

// add adds a part's outcome and writes the file.
func (r *report) add(name string, out outcome, l *lab) error {
	r.Parts[name] = out
	r.ran = append(r.ran, name)
	r.head = head{
		Program: "gpu-check", Commit: commit, Device: l.o.device, Short: l.o.short, Machine: l.machine,
		Versions: l.versions,
	}
	return bench.Write(r.file, r)
}

// any reports whether a part of this run has a status.
func (r *report) any(status string) bool {
	return slices.ContainsFunc(r.ran, func(name string) bool { return r.Parts[name].Status == status })
}

// print writes the table of this run's parts.
func (r *report) print(w io.Writer) {
	if !r.any(bench.StatusOK) && !r.any(bench.StatusFailed) {
		for _, name := range r.ran {
			fmt.Fprintf(w, "%s: %s\n", name, r.Parts[name])
		}
		fmt.Fprintln(w, "Nothing was measured.")
		return
	}
	fmt.Fprintf(w, "%s\n", r.Machine)
	if r.Device == torch.CPU {
		fmt.Fprintln(w, "In miniature on the processor: these figures say nothing about a GPU.")
	}
	for _, name := range r.ran {
		p := r.Parts[name]
		line, _, _ := strings.Cut(p.String(), "\n") // the file holds the whole text
		fmt.Fprintf(w, "\n%s: %s\n%s", name, line, &bench.Report{Rows: p.Rows})
	}
	fmt.Fprintf(w, "%s holds it all.\n", r.file)
}

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
