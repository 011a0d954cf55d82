package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// save measures checkpoints: with the optimiser's state for the smallest size, weights only for the largest.
func save(ctx context.Context, l *lab, r *bench.Report) error {
	return l.each(ctx, r, l.saveOf, "0.6B", "4B")
}

func (l *lab) saveOf(ctx context.Context, r *bench.Report, s size) error {
	optimizer := s.name != "4B"
	e, err := l.withEngine(ctx, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return err
	}
	saved := filepath.Join(l.dir, "saved")
	defer os.RemoveAll(saved)
	dir, err := l.model(s)
	if err != nil {
		return err
	}
	var digest string
	var figures []bench.Figure
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"s to load bfloat16", func() error { return e.Load(ctx, policy.RolePolicy, dir, true) }},
		{"", func() error {
			if !optimizer {
				return nil
			}
			return oneStep(ctx, e, s, 1)
		}},
		{"s to save", func() (err error) { digest, err = e.Save(ctx, policy.RolePolicy, saved); return err }},
		{"", func() error { return e.Unload(ctx, policy.RolePolicy) }},
		{"s to load", func() error { return e.Load(ctx, policy.RolePolicy, saved, true) }},
		// nothing is read but the digest
		{"where it is resident", func() error { return e.Load(ctx, policy.RolePolicy, saved, true) }},
	} {
		began := time.Now()
		if err := c.do(); err != nil {
			return err
		}
		if c.name != "" {
			figures = append(figures, bench.Of(c.name, time.Since(began).Seconds()))
		}
	}
	bytes, err := folderBytes(saved)
	if err != nil {
		return err
	}
	name := s.name + ", weights"
	if optimizer {
		name += " and optimiser"
	}
	r.Add(name, append(figures, bench.Of("GiB", gib(bytes)))...)
	state, err := e.State(ctx, policy.RolePolicy)
	if err == nil && (state.Digest != digest || optimizer != (state.Step == 1)) {
		err = fmt.Errorf("what was saved as %s is loaded as %s, after %d steps", digest, state.Digest, state.Step)
	}
	return err
}

func folderBytes(dir string) (total int64, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			total += info.Size()
		}
	}
	return total, err
}
