package analysis

import (
	"context"
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/internal/offers"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// Properties returns what a run's world offers to the methods before training: what the stage resample of the first
// step has committed, also before the step is finished. It returns nil for a run without such a stage, and for an
// import, which has no first policy.
func (r *Record) Properties(ctx context.Context, run string) (*diagnose.PropertyReport, error) {
	v, err := r.Visible(ctx, run)
	if err != nil {
		return nil, err
	}
	selected, found, err := v.firstSelection(ctx)
	if err != nil || !found {
		return nil, err
	}
	out, found := offers.Read(selected.Stats)
	if !found {
		return nil, nil
	}
	return &out, nil
}

// firstSelection returns the manifest of the stage resample of the first finished step, or of step 1 if it is not
// finished yet.
func (v *Visible) firstSelection(ctx context.Context) (m schema.Manifest, found bool, err error) {
	if len(v.steps) == 0 {
		m, _, found, err = v.record.writer.Lookup(ctx, schema.At(v.run, 1, schema.StageResample))
		return m, found, err
	}
	refs := v.heads[0].Stages[schema.StageResample]
	if len(refs) == 0 {
		return m, false, nil
	}
	m, err = v.record.manifest(ctx, refs[0])
	return m, err == nil, err
}

// Offer is one property of a world for programs.
type Offer struct {
	Key     string   `json:"key"`
	Name    string   `json:"name"`
	Value   *float64 `json:"value"` // null: the record has no data for it
	For     string   `json:"wanted_by"`
	Bound   *float64 `json:"bound"` // null: the papers name none
	Below   bool     `json:"below"` // the value must be below the bound; else at least the bound
	Reached bool     `json:"reached"`
}

// Offers returns the properties for programs, in the order in which they are shown; none of nil.
func Offers(r *diagnose.PropertyReport) []Offer {
	if r == nil {
		return nil
	}
	list := r.List()
	out := make([]Offer, len(list))
	for i, p := range list {
		out[i] = Offer{Key: p.Key, Name: p.Name, For: p.For, Below: p.Below, Reached: p.Reached()}
		if p.Known {
			out[i].Value = new(p.Value)
		}
		if p.Bound != 0 {
			out[i].Bound = new(p.Bound)
		}
	}
	return out
}

// WriteProperties prints the properties of a world at step 0 as text.
func WriteProperties(w io.Writer, r *diagnose.PropertyReport) error {
	p := terminal.NewPrinter(w)
	printProperties(p, r)
	return p.Close()
}

func printProperties(p *terminal.Printer, r *diagnose.PropertyReport) {
	p.Line("\nbefore training (%d trajectories in %d groups)      value   wanted by", r.Trajectories, r.Groups)
	for _, property := range r.List() {
		p.Line("  %-42s %8s   %s", property.Name, PropertyValue(property), propertyWanted(property))
	}
}

// PropertyValue is a property's value as text, or a dash if the record has no data for it.
func PropertyValue(p diagnose.Property) string {
	switch {
	case !p.Known:
		return noData
	case p.Share:
		return fmt.Sprintf("%.1f%%", 100*p.Value)
	}
	return fmt.Sprintf("%.2f", p.Value)
}

// propertyWanted says which methods want the property, and whether the world has it.
func propertyWanted(p diagnose.Property) string {
	if p.Bound == 0 {
		return p.For
	}
	return fmt.Sprintf("%s (%s): %s", p.For, PropertyBound(p), map[bool]string{true: "yes", false: "no"}[p.Reached()])
}

// PropertyBound is the bound that the papers name for a property, or a dash if they name none.
func PropertyBound(p diagnose.Property) string {
	if p.Bound == 0 {
		return noData
	}
	sign, bound := "≥", fmt.Sprintf("%g", p.Bound)
	if p.Below {
		sign = "<"
	}
	if p.Share {
		bound = fmt.Sprintf("%g%%", 100*p.Bound)
	}
	return sign + " " + bound
}
