package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
)

// togetherFigures compare a trainer and a sampler that share a device with each of them alone on it.
type togetherFigures struct {
	Sizes []togetherSize `json:"sizes"`
}

type togetherSize struct {
	Size string `json:"size"`
	// Speeds are in tokens a second: trained, and sampled (the time includes the prompts). Alone, the other process is
	// there with its model and does nothing.
	TrainAlone      float64 `json:"train_alone_tokens_per_s"`
	SampleAlone     float64 `json:"sample_alone_tokens_per_s"`
	TrainTogether   float64 `json:"train_together_tokens_per_s"`
	SampleTogether  float64 `json:"sample_together_tokens_per_s"`
	Steps           int     `json:"steps_together"`
	Generations     int     `json:"generations_together"`
	SecondsTogether float64 `json:"seconds_together"`
	// Shares are the speeds together over those alone. If the two only took turns, the shares would add up to 1.
	TrainShare  float64 `json:"train_share"`
	SampleShare float64 `json:"sample_share"`
	// Memory is the peak of each process: of the device, or of the host on a processor.
	TrainerBytes int64  `json:"trainer_peak_bytes"`
	SamplerBytes int64  `json:"sampler_peak_bytes"`
	Error        string `json:"error,omitempty"` // the two did not fit the device
}

// together runs a sampler next to training, each in a process of its own on one device.
func together(ctx context.Context, l *lab) (figures, error) {
	sizes, err := l.sizes("0.6B", "1.7B")
	if err != nil {
		return nil, err
	}
	out := &togetherFigures{}
	for _, s := range sizes {
		found, err := l.togetherOf(ctx, s)
		if errors.Is(err, policy.ErrOutOfMemory) {
			found.Error, err = err.Error(), nil
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", s.name, err)
		}
		out.Sizes = append(out.Sizes, found)
	}
	return out, nil
}

func (l *lab) togetherOf(ctx context.Context, s size) (togetherSize, error) {
	out := togetherSize{Size: s.name}
	dir, err := l.model(s)
	if err != nil {
		return out, err
	}
	trainer, err := l.withEngine(ctx, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return out, err
	}
	if err := trainer.Load(ctx, policy.RolePolicy, dir, false); err != nil {
		return out, err
	}
	sampler, err := l.secondEngine(ctx)
	if err != nil {
		return out, err
	}
	defer sampler.Close()
	if err := sampler.Load(ctx, policy.RolePolicy, dir, false); err != nil {
		return out, err
	}
	alone, err := l.timeUpdates(ctx, trainer, s)
	if err != nil {
		return out, err
	}
	out.TrainAlone = alone.TokensPerSecond
	req := s.generation(s.batch)
	_, seconds, err := l.timeGeneration(ctx, sampler, req)
	if err != nil {
		return out, err
	}
	sampled := float64(s.batch * s.fresh)
	out.SampleAlone = sampled * float64(len(seconds)) / sum(seconds)
	if err := l.runTogether(ctx, trainer, sampler, s, req, &out); err != nil {
		return out, err
	}
	out.TrainShare, out.SampleShare = out.TrainTogether/out.TrainAlone, out.SampleTogether/out.SampleAlone
	out.TrainerBytes, err = l.peakOf(trainer)
	if err == nil {
		out.SamplerBytes, err = l.peakOf(sampler)
	}
	return out, err
}

// secondEngine opens an engine for sampling on the device of the first.
func (l *lab) secondEngine(ctx context.Context) (*torch.Engine, error) {
	python, err := l.python()
	if err != nil {
		return nil, err
	}
	return torch.Open(ctx, torch.Options{Python: python, Device: l.o.device, Dtype: l.dtype(),
		Deterministic: !l.onGPU(), Threads: l.threads(), Dir: l.dir, Logger: l.log})
}

// runTogether trains and samples at the same time until both have done enough. Each goes on until then, so that neither
// is ever alone, and counts what it finished over the time that it took.
func (l *lab) runTogether(ctx context.Context, trainer, sampler *torch.Engine, s size, req policy.GenerateRequest,
	out *togetherSize) error {
	steps, least := l.enough()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	var trained, generated atomic.Int64
	enough := func() bool {
		return int(trained.Load()) >= steps && int(generated.Load()) >= l.repeats() && time.Since(began) >= least
	}
	loop := func(did *atomic.Int64, took *float64, once func() error) error {
		for !enough() {
			if err := once(); err != nil {
				cancel()
				return err
			}
			did.Add(1)
			*took = time.Since(began).Seconds()
		}
		return nil
	}
	var work sync.WaitGroup
	var trainTook, sampleTook float64
	var trainErr, sampleErr error
	work.Go(func() {
		trainErr = loop(&trained, &trainTook, func() error { return oneStep(ctx, trainer, s, 1) })
	})
	work.Go(func() {
		sampleErr = loop(&generated, &sampleTook, func() error { _, err := sampler.Generate(ctx, req); return err })
	})
	work.Wait()
	if err := firstCause(trainErr, sampleErr); err != nil {
		return err
	}
	out.Steps, out.Generations = int(trained.Load()), int(generated.Load())
	out.SecondsTogether = max(trainTook, sampleTook)
	out.TrainTogether = float64(out.Steps*s.micro*s.row) / trainTook
	out.SampleTogether = float64(out.Generations*s.batch*s.fresh) / sampleTook
	return nil
}

// firstCause returns the error that is not only the consequence of the other's.
func firstCause(a, b error) error {
	if a == nil || b != nil && errors.Is(a, context.Canceled) {
		return b
	}
	return a
}

// peakOf returns an engine's greatest memory. On a GPU the engine reports it with its beats, once a second; on a
// processor the kernel counts the process's resident memory.
func (l *lab) peakOf(e *torch.Engine) (int64, error) {
	if l.onGPU() {
		time.Sleep(1500 * time.Millisecond)
		if peak := e.Usage().Peak; peak > 0 {
			return peak, nil
		}
		return 0, errors.New("the engine tells no peak of its memory")
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(e.PID()), "status"))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", e.PID(), err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel tells no peak of the memory of process %d", e.PID())
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func (f *togetherFigures) rows() []row {
	var out []row
	for _, s := range f.Sizes {
		if s.Error != "" {
			out = append(out, row{what: s.Size + ": both on one device", value: inCell(s.Error)})
			continue
		}
		out = append(out,
			row{what: s.Size + ": training alone, together", value: fmt.Sprintf("%.0f, %.0f tokens/s (%.0f%%)",
				s.TrainAlone, s.TrainTogether, 100*s.TrainShare)},
			row{what: s.Size + ": sampling alone, together", value: fmt.Sprintf("%.0f, %.0f tokens/s (%.0f%%)",
				s.SampleAlone, s.SampleTogether, 100*s.SampleShare)},
			row{what: s.Size + ": both shares together", value: fmt.Sprintf("%.2f; 1 is taking turns",
				s.TrainShare+s.SampleShare)},
			row{what: s.Size + ": memory of the trainer, the sampler", value: gib(s.TrainerBytes) + ", " +
				gib(s.SamplerBytes)})
	}
	return out
}
