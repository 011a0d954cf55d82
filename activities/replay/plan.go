package replay

import (
	"slices"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Plan is what a replay runs and reads.
type Plan struct {
	Made   *Made
	Stages []string
	// Recipes holds the manifest of the recipe that the step was made under, if it is not the run's.
	Recipes []schema.Ref

	reads []Read
}

// Read is a table that a replay reads behind a manifest.
type Read struct {
	Ref   schema.Ref
	Table schema.Table
}

// NewPlan plans a replay of stages. With follow it adds the optional stages that come directly after the last stage, as
// far as the step has them.
func NewPlan(made *Made, replayed []string, follow bool) *Plan {
	p := &Plan{Made: made, Stages: slices.Clone(replayed)}
	if !follow {
		return p
	}
	all := stages.Replayable()
	for _, stage := range all[slices.Index(all, replayed[len(replayed)-1])+1:] {
		if declared, _ := stages.Of(stage); !declared.Optional() || len(made.Refs[stage]) == 0 {
			break
		}
		p.Stages = append(p.Stages, stage)
	}
	return p
}

// Fit fits a replay through the update to the needs of its recipe: it leaves out stages that only other recipes have,
// and adds logprobs before advantage, since the engine that trains is there and can be asked again.
func (p *Plan) Fit(needs stages.Needs) {
	if !p.Has(schema.StageUpdate) {
		return
	}
	runs := func(stage string) bool { declared, _ := stages.Of(stage); return declared.Runs(needs) }
	p.Stages = slices.DeleteFunc(p.Stages, func(stage string) bool { return !runs(stage) })
	if i := slices.Index(p.Stages, schema.StageAdvantage); i >= 0 && runs(schema.StageLogprobs) {
		p.Stages = slices.Insert(p.Stages, i, schema.StageLogprobs)
	}
}

// Has reports whether the replay runs a stage.
func (p *Plan) Has(stage string) bool { return slices.Contains(p.Stages, stage) }

// Read adds a table that the replay reads behind manifests.
func (p *Plan) Read(table schema.Table, refs ...schema.Ref) {
	for _, ref := range refs {
		p.reads = append(p.reads, Read{ref, table})
	}
}

// Reads lists what the replay reads, in the order in which it was added.
func (p *Plan) Reads() []Read { return p.reads }

// Inputs lists the manifests that the replay's claim names: those of recipes first, then those that it reads.
func (p *Plan) Inputs() []schema.Ref {
	out := append([]schema.Ref{p.Made.Recipe}, p.Recipes...)
	for _, r := range p.reads {
		out = append(out, r.Ref)
	}
	return out
}
