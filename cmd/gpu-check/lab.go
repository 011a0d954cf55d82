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
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// lab is what the parts share.
type lab struct {
	o        options
	log      *slog.Logger
	dir      string       // models; gone after Close
	host     *device.Host // nil without a driver, or if hostErr says why NVML cannot be used
	hostErr  error
	machine  hardware
	versions map[string]string

	engine   *torch.Engine // nil while there is none
	settings settings
	peer     *bench.Peer
}

// settings are the engine's settings in which parts differ.
type settings struct {
	dtype         string
	deterministic bool
	checkpointing string
}

func openLab(o options, stderr io.Writer) (*lab, error) {
	l := &lab{
		o: o, log: slog.New(slog.DiscardHandler),
		versions: map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go")},
	}
	if o.verbose {
		l.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	// If NVML is broken, only the part inventory fails, because PyTorch may not need NVML.
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

// Close ends the engine and the peer, and removes the models.
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

// skips returns why a part does not run, or "".
func (l *lab) skips(part string) string {
	if l.host == nil && l.hostErr == nil && (l.onGPU() || part == "inventory") {
		return noDriver
	}
	return ""
}

func (l *lab) onGPU() bool { return l.o.device == torch.CUDA }

// sizes returns the named sizes that are measured, the smallest first. If there is none, the error is a skip.
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
		err = bench.Skip("--sizes leaves out %s", strings.Join(names, " and "))
	}
	return out, err
}

// each runs what a part does with a size, for each of the named sizes that are measured.
func (l *lab) each(ctx context.Context, r *bench.Report, work func(context.Context, *bench.Report, size) error,
	names ...string) error {
	sizes, err := l.sizes(names...)
	if err != nil {
		return err
	}
	for _, s := range sizes {
		if err := work(ctx, r, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// dtype is the models' type if a part names none.
func (l *lab) dtype() string {
	if l.onGPU() {
		return torch.BFloat16
	}
	return torch.Float32
}

// threads is the number of Python's threads on the processor. Miniatures gain nothing from more than one.
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

// withEngine returns an engine with the settings: the present one if it has them, otherwise a new one in its place.
func (l *lab) withEngine(ctx context.Context, s settings) (*torch.Engine, error) {
	// On a processor the engine is always deterministic.
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
		Python: python, Device: l.o.device, Dtype: s.dtype, Deterministic: s.deterministic,
		Checkpointing: s.checkpointing, Threads: l.threads(), Dir: l.dir, Logger: l.log,
	})
	if err != nil {
		return nil, err
	}
	l.engine, l.settings = e, s
	if name, ok := strings.CutPrefix(e.Describe().Device, "cuda: "); ok && len(l.machine.GPUs) == 0 {
		l.machine.GPUs = []string{name} // NVML did not report it
	}
	maps.Copy(l.versions, e.Versions())
	return e, nil
}

// loaded is withEngine with a size's model resident.
func (l *lab) loaded(ctx context.Context, s size, with settings) (*torch.Engine, error) {
	e, err := l.withEngine(ctx, with)
	if err != nil {
		return nil, err
	}
	return e, l.load(ctx, e, s, false)
}

// load makes a size's model resident in an engine.
func (l *lab) load(ctx context.Context, e *torch.Engine, s size, trained bool) error {
	dir, err := l.model(s)
	if err != nil {
		return err
	}
	return e.Load(ctx, policy.RolePolicy, dir, trained)
}

// release frees the devices after a part. On a processor the engine is emptied and kept for the next part.
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
			return l.endEngine() // the engine is lost
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

// model returns the folder of a size's random weights. The first call writes it.
func (l *lab) model(s size) (string, error) {
	dir := filepath.Join(l.dir, "model-"+s.name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	began := time.Now()
	// The folder appears only once it is complete, because later parts use it unchecked.
	half := dir + ".half"
	_ = os.RemoveAll(half)
	if err := randomModel(half, s.shape, 1); err != nil {
		return "", err
	}
	l.log.Info("model written", "size", s.name, "seconds", time.Since(began).Seconds())
	return dir, os.Rename(half, dir)
}

// freed is the share of a device's memory that the plan may fill. The rest is for memory that no plan covers.
const freed = 0.85

// checkpointing is off for a size whose activations all fit the device, otherwise on.
func (l *lab) checkpointing(s size) string {
	m := s.model().UpdateMemory(plan.Settings{States: 2, BFloat16: l.onGPU(), Tokens: s.row})
	if l.onGPU() && float64(m.Total()) < freed*float64(l.machine.GPUMemoryBytes) {
		return "off"
	}
	return "on"
}

// peakFlops is the device's peak rate; 0 if it is unknown.
func (l *lab) peakFlops() float64 {
	if !l.onGPU() || len(l.machine.GPUs) == 0 {
		return 0
	}
	return plan.PeakFlops(l.machine.GPUs[0])
}
