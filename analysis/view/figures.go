package view

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/analysis/status"
)

// Figures are the report's, as they were after some step.
type Figures struct {
	StepsDone int              `json:"steps_done"`
	Tiles     []report.Tile    `json:"tiles"`
	Sections  []report.Section `json:"sections"`
}

// figures keeps the figures until the run goes on.
type figures struct {
	gather func(context.Context) (*report.Page, error)
	mu     sync.Mutex
	drawn  *Figures
	status status.Status
}

// Figures draws the report's figures, or returns those drawn before if the run has not gone on since.
func (v *Viewer) Figures(ctx context.Context) (*Figures, error) {
	f, now := &v.figures, v.State().Run
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drawn != nil && f.drawn.StepsDone >= now.StepsDone && f.status == now.State() {
		return f.drawn, nil
	}
	page, err := f.gather(ctx)
	if err != nil {
		return nil, err
	}
	out := &Figures{StepsDone: page.Run.StepsDone, Tiles: page.Tiles, Sections: page.Sections}
	f.drawn, f.status = out, page.Run.State()
	return out, nil
}
