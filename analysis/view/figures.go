package view

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/analysis/status"
)

// Figures are the report's, as they were after some step.
type Figures struct {
	StepsDone int           `json:"steps_done"`
	Tiles     []report.Tile `json:"tiles"`
	Sections  []Section     `json:"sections"`
}

// Section is a part of the report.
type Section struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Figures []Figure `json:"figures"`
}

// Figure is one figure of the report. Its drawing is SVG, whose texts the chart package has escaped.
type Figure struct {
	ID     string        `json:"id"`
	Title  string        `json:"title"`
	Note   string        `json:"note"`
	Empty  string        `json:"empty,omitempty"` // why there is nothing to draw
	SVG    string        `json:"svg,omitempty"`
	Legend []chart.Key   `json:"legend,omitempty"`
	Table  *report.Table `json:"table,omitempty"`
	SQL    []string      `json:"sql"`
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
	out := &Figures{StepsDone: page.Run.StepsDone, Tiles: page.Tiles, Sections: []Section{}}
	for _, s := range page.Sections {
		section := Section{ID: s.ID, Title: s.Title, Figures: []Figure{}}
		for _, x := range s.Figures {
			figure := Figure{ID: x.ID, Title: x.Title, Note: x.Note, Empty: x.Empty, SVG: x.SVG, Legend: x.Legend,
				Table: x.Table}
			for _, q := range x.Questions {
				figure.SQL = append(figure.SQL, q.SQL)
			}
			section.Figures = append(section.Figures, figure)
		}
		out.Sections = append(out.Sections, section)
	}
	f.drawn, f.status = out, page.Run.State()
	return out, nil
}
