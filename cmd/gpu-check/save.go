package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/policy"
)

// saveFigures are the seconds of loading and saving, with the folder's digest.
type saveFigures struct {
	Sizes []saveSize `json:"sizes"`
}

type saveSize struct {
	Size      string `json:"size"`
	Optimizer bool   `json:"optimizer"` // saved and loaded with the weights
	// First is the time to load the new model, whose weights are bfloat16. Saved weights are float32.
	First      float64 `json:"load_bfloat16_seconds"`
	Save       float64 `json:"save_seconds"`
	SavedBytes int64   `json:"saved_bytes"`
	Load       float64 `json:"load_seconds"`
	Reload     float64 `json:"load_resident_seconds"` // of the same folder again: nothing is read but its digest
}

// save measures checkpoints: with the optimiser's state for the smallest size, weights only for the largest.
func save(ctx context.Context, l *lab) (figures, error) {
	sizes, err := l.sizes("0.6B", "4B")
	if err != nil {
		return nil, err
	}
	out := &saveFigures{}
	for _, s := range sizes {
		found, err := l.saveOf(ctx, s, s.name != "4B")
		if found.First > 0 {
			out.Sizes = append(out.Sizes, found)
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return out, nil
}

func (l *lab) saveOf(ctx context.Context, s size, optimizer bool) (saveSize, error) {
	out := saveSize{Size: s.name, Optimizer: optimizer}
	e, err := l.withEngine(ctx, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return out, err
	}
	dir, err := l.model(s)
	if err != nil {
		return out, err
	}
	load := func(from string, into *float64) error {
		began := time.Now()
		err := e.Load(ctx, policy.RolePolicy, from, true)
		*into = time.Since(began).Seconds()
		return err
	}
	if err := load(dir, &out.First); err != nil {
		return saveSize{}, err
	}
	if optimizer {
		if err := oneStep(ctx, e, s, 1); err != nil {
			return out, err
		}
	}
	saved := filepath.Join(l.dir, "saved")
	defer os.RemoveAll(saved)
	began := time.Now()
	digest, err := e.Save(ctx, policy.RolePolicy, saved)
	if err != nil {
		return out, err
	}
	out.Save = time.Since(began).Seconds()
	if out.SavedBytes, err = folderBytes(saved); err != nil {
		return out, err
	}
	if err := e.Unload(ctx, policy.RolePolicy); err != nil {
		return out, err
	}
	if err := load(saved, &out.Load); err != nil {
		return out, err
	}
	if err := load(saved, &out.Reload); err != nil {
		return out, err
	}
	state, err := e.State(ctx, policy.RolePolicy)
	if err == nil && (state.Digest != digest || optimizer != (state.Step == 1)) {
		err = fmt.Errorf("what was saved as %s is loaded as %s, after %d steps", digest, state.Digest, state.Step)
	}
	return out, err
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

func (f *saveFigures) rows() []row {
	var out []row
	for _, s := range f.Sizes {
		name := s.Size + ", weights"
		if s.Optimizer {
			name += " and optimiser"
		}
		for _, x := range []struct {
			what    string
			seconds float64
		}{
			{s.Size + ": load of bfloat16", s.First}, {name + ", " + gib(s.SavedBytes) + ": save", s.Save},
			{name + ": load", s.Load}, {name + ": load where it is resident", s.Reload},
		} {
			if x.seconds > 0 { // it was measured
				out = append(out, row{what: x.what, value: fmt.Sprintf("%.1f s", x.seconds)})
			}
		}
	}
	return out
}
