package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// together compares a trainer and a sampler that share a device, each in a process of its own, with each of them alone
// on it. Alone, the other process is there with its model and does nothing.
func together(ctx context.Context, l *lab, r *bench.Report) error {
	return l.each(ctx, r, func(ctx context.Context, r *bench.Report, s size) error {
		err := l.togetherOf(ctx, r, s)
		if errors.Is(err, policy.ErrOutOfMemory) {
			r.Note(s.name+": both on one device", "%v", err)
			return nil
		}
		return err
	}, "0.6B", "1.7B")
}

func (l *lab) togetherOf(ctx context.Context, r *bench.Report, s size) error {
	trainer, err := l.loaded(ctx, s, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return err
	}
	sampler, err := l.secondEngine(ctx)
	if err != nil {
		return err
	}
	defer sampler.Close()
	if err := l.load(ctx, sampler, s, false); err != nil {
		return err
	}
	alone, err := l.timeUpdates(ctx, trainer, s)
	if err != nil {
		return err
	}
	req := s.generation(s.batch)
	_, seconds, err := l.timeGeneration(ctx, sampler, req)
	if err != nil {
		return err
	}
	sampledAlone := float64(s.batch*s.fresh) * float64(len(seconds)) / sum(seconds)
	trained, sampled, err := l.runTogether(ctx, trainer, sampler, s, req)
	if err != nil {
		return err
	}
	trainerBytes, err := l.peakOf(trainer)
	if err != nil {
		return err
	}
	samplerBytes, err := l.peakOf(sampler)
	r.Add(s.name+": training", bench.Of("tokens/s alone", alone.tokens), bench.Of("together", trained),
		bench.Of("share", trained/alone.tokens), bench.Of("GiB", gib(trainerBytes)))
	r.Add(s.name+": sampling", bench.Of("tokens/s alone", sampledAlone), bench.Of("together", sampled),
		bench.Of("share", sampled/sampledAlone), bench.Of("GiB", gib(samplerBytes)))
	return err
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
// is ever alone, and counts the tokens a second of what it finished.
func (l *lab) runTogether(ctx context.Context, trainer, sampler *torch.Engine, s size, req policy.GenerateRequest) (
	trained, sampled float64, err error) {
	steps, least := l.enough()
	work, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	var updates, generations atomic.Int64
	enough := func() bool {
		return int(updates.Load()) >= steps && int(generations.Load()) >= l.repeats() && time.Since(began) >= least
	}
	loop := func(did *atomic.Int64, tokens int, rate *float64, once func() error) error {
		for !enough() {
			if err := once(); err != nil {
				return err
			}
			*rate = float64(did.Add(1)) * float64(tokens) / time.Since(began).Seconds()
		}
		return nil
	}
	work.Go(func() error {
		return loop(&updates, s.micro*s.row, &trained, func() error { return oneStep(ctx, trainer, s, 1) })
	})
	work.Go(func() error {
		return loop(&generations, s.batch*s.fresh, &sampled, func() error {
			_, err := sampler.Generate(ctx, req)
			return err
		})
	})
	return trained, sampled, work.Wait()
}

// peakOf returns an engine's greatest memory: of the device, or of the host on a processor.
func (l *lab) peakOf(e *torch.Engine) (int64, error) {
	if l.onGPU() {
		return peakAfter(e, 0)
	}
	return bench.PeakResident(e.PID())
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}
