package tinker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// reference is tinker.json: where a checkpoint is at the server, and by what it is known.
type reference struct {
	BaseModel string `json:"base_model"`
	Weights   string `json:"weights"` // path of the adapter with the optimiser's state
	Sampler   string `json:"sampler"` // path of the adapter alone
	Rank      int    `json:"rank"`
	Step      int64  `json:"step"`
	// Probe are tokens, and their log-probabilities when the checkpoint was saved, the first one left out.
	Probe    []int32   `json:"probe"`
	LogProbs []float32 `json:"log_probs"`
}

// readReference reads the folder's tinker.json; nil if there is none.
func readReference(dir string) (*reference, error) {
	text, err := os.ReadFile(filepath.Join(dir, checkpoint.FileReference))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r reference
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", checkpoint.ErrCorrupt, checkpoint.FileReference, badinput.JSON(err))
	}
	if !pathOf.MatchString(r.Weights) || r.Step < 0 || len(r.Probe) != len(r.LogProbs)+1 {
		return nil, fmt.Errorf("%w: %s names no checkpoint of a server", checkpoint.ErrCorrupt,
			checkpoint.FileReference)
	}
	return &r, nil
}

func (r reference) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, checkpoint.FileReference), append(text, '\n'), 0o644)
}

// compare returns a Mismatch if log-probabilities of the probe are too far from what they should be.
func (l *link) compare(got, want []float32, with, remedy string) error {
	m := &Mismatch{Server: l.Name(), With: with, Tolerance: l.Tolerance, Remedy: remedy}
	most := -1.0
	for i := range want {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		m.Mean += d / float64(len(want))
		if d > most {
			most, m.At, m.Want, m.Got = d, i+1, want[i], got[i]
		}
	}
	if m.Mean > l.Tolerance {
		return m
	}
	return nil
}
