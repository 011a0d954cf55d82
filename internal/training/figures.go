package training

import (
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// Figures describes an update: means over its optimiser steps on the batch, without those on the replay batch.
type Figures struct {
	// Loss, KL, ClipFraction, Entropy and GradNorm are means of the columns of these names.
	Loss, KL, ClipFraction float64
	Entropy, GradNorm      *float64 // nil if the trainer does not tell
	// ReferenceKL is the mean divergence from the reference; nil if the loss has no such term.
	ReferenceKL *float64
}

// FiguresOf averages the rows of an update.
func FiguresOf(rows []schema.UpdateRow) Figures {
	var f Figures
	rows = slices.DeleteFunc(slices.Clone(rows), func(r schema.UpdateRow) bool {
		return r.Source != nil && *r.Source == schema.SourceReplay
	})
	n := float64(len(rows))
	for _, r := range rows {
		f.Loss += r.Loss / n
		f.KL += r.KL / n
		f.Entropy = schema.AddShare(f.Entropy, r.Entropy, n)
		f.ClipFraction += r.ClipFraction / n
		f.GradNorm = schema.AddShare(f.GradNorm, r.GradNorm, n)
		f.ReferenceKL = schema.AddShare(f.ReferenceKL, r.ReferenceKL, n)
	}
	return f
}
