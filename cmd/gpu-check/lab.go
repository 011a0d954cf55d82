package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// lab is what the parts share.
type lab struct {
	o        options
	log      *slog.Logger
	dir      string       // models; gone after Close
	host     *device.Host // nil without a driver, or where hostErr says why NVML cannot be used
	hostErr  error
	machine  hardware
	versions map[string]string

	engine   *torch.Engine // nil while there is none
	settings settings
	peer     *peer
}

// settings are those of an engine in which parts differ.
type settings struct {
	dtype         string
	deterministic bool
	checkpointing string
}

func openLab(o options, stderr io.Writer) (*lab, error) {
	l := &lab{o: o, log: slog.New(slog.DiscardHandler), versions: map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go")}}
	if o.verbose {
		l.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	// An NVML that is out of order is the inventory's failure; PyTorch may do without it.
	l.host, l.hostErr = openDriver()
	var err error
	if l.machine, err = thisHardware(l.host); l.hostErr == nil {
		l.hostErr = err
	}
	if l.host != nil {
		d := l.host.Driver()
		l.versions["driver"], l.versions["driver_cuda"] = d.Version, d.CUDA
	}
	if l.dir, err = os.MkdirTemp(o.dir, "gpu-check-"); err != nil {
		return nil, err
	}
	return l, nil
}

// Close ends what runs and removes the models.
func (l *lab) Close() error {
	l.endPeer()
	err := l.endEngine()
	if l.host != nil {
		_ = l.host.Close()
	}
	_ = os.RemoveAll(l.dir)
	return err
}

const noDriver = "no NVIDIA driver"

// skips says why a part is not run, or "".
func (l *lab) skips(part string) string {
	if l.host == nil && l.hostErr == nil && (l.onGPU() || part == "inventory") {
		return noDriver
	}
	return ""
}

func (l *lab) onGPU() bool { return l.o.device == torch.CUDA }

// sizes are those of the named ones that are measured, the smallest first; none of them is errSkipped.
func (l *lab) sizes(names ...string) (out []size, err error) {
	if !l.onGPU() {
		return []size{miniature}, nil
	}
	for _, s := range qwen3 {
		if slices.Contains(names, s.name) && (len(l.o.sizes) == 0 || slices.Contains(l.o.sizes, s.name)) {
			if l.o.short {
				s.micro = 2
			}
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		err = fmt.Errorf("%w: --sizes leaves out %s", errSkipped, strings.Join(names, " and "))
	}
	return out, err
}

// dtype is what the models compute in where a part does not say.
func (l *lab) dtype() string {
	if l.onGPU() {
		return torch.BFloat16
	}
	return torch.Float32
}

// threads of Python on the processor: miniatures gain nothing by more than one.
func (l *lab) threads() int {
	if l.onGPU() {
		return l.machine.Cores
	}
	return 1
}

// python is the interpreter's path.
func (l *lab) python() (string, error) {
	path, err := exec.LookPath(l.o.python)
	if err != nil {
		return "", fmt.Errorf("find the interpreter %q: %w", l.o.python, err)
	}
	return filepath.Abs(path)
}

// withEngine gives an engine of the settings, with nothing in it: the one that there is, or a new one in its place.
func (l *lab) withEngine(ctx context.Context, s settings) (*torch.Engine, error) {
	// On a processor there is no other way than the deterministic one.
	s.deterministic = s.deterministic || !l.onGPU()
	if l.engine != nil && l.settings == s {
		return l.engine, nil
	}
	if err := l.endEngine(); err != nil {
		return nil, err
	}
	python, err := l.python()
	if err != nil {
		return nil, err
	}
	e, err := torch.Open(ctx, torch.Options{
		Python: python, Device: l.o.device, Dtype: s.dtype, Deterministic: s.deterministic, Checkpointing: s.checkpointing, Threads: l.threads(), Dir: l.dir, Logger: l.log,
	})
	if err != nil {
		return nil, err
	}
	l.engine, l.settings = e, s
	if name, ok := strings.CutPrefix(e.Describe().Device, "cuda: "); ok && len(l.machine.GPUs) == 0 {
		l.machine.GPUs = []string{name} // NVML did not tell
	}
	maps.Copy(l.versions, e.Versions())
	return e, nil
}

// release frees the devices after a part. On a processor the engine is kept, emptied, for the next one.
func (l *lab) release(ctx context.Context) error {
	if l.engine == nil {
		return nil
	}
	if l.onGPU() {
		l.endPeer()
		return l.endEngine()
	}
	for _, role := range []policy.Role{policy.RolePolicy, policy.RoleReference} {
		if l.engine.Unload(ctx, role) != nil {
			return l.endEngine() // it is lost
		}
	}
	return nil
}

func (l *lab) endEngine() error {
	if l.engine == nil {
		return nil
	}
	e := l.engine
	l.engine = nil
	return e.Close()
}

// model gives the folder of a size's random weights, which is written when it is first asked for.
func (l *lab) model(s size) (string, error) {
	dir := filepath.Join(l.dir, "model-"+s.name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	began := time.Now()
	// Written whole or not at all, for a later part would take it as it is.
	half := dir + ".half"
	_ = os.RemoveAll(half)
	if err := checkpoint.InitBFloat16(half, s.shape, 1); err != nil {
		return "", err
	}
	l.log.Info("model written", "size", s.name, "seconds", time.Since(began).Seconds())
	return dir, os.Rename(half, dir)
}

// freed is how much of a device's memory the plan may fill: what is left is for what no plan knows.
const freed = 0.85

// checkpointing says how a size trains here: with all activations kept where they fit, else computed again.
func (l *lab) checkpointing(s size) string {
	m := s.model().UpdateMemory(plan.Settings{BFloat16: l.onGPU(), Tokens: s.row})
	if l.onGPU() && float64(m.Total()) < freed*float64(l.machine.GPUMemoryBytes) {
		return "off"
	}
	return "on"
}

// peakFlops is the device's, 0 where it is not known.
func (l *lab) peakFlops() float64 {
	if !l.onGPU() || len(l.machine.GPUs) == 0 {
		return 0
	}
	return plan.PeakFlops(l.machine.GPUs[0])
}
