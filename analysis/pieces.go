package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Piece is what one stage of a step committed: for stages that run turn by turn, one turn of it.
type Piece struct {
	Step       int    // NoStep before the first step
	Stage      string // today's name
	Try, Turn  int    // −1 where the stage has none
	Shards     []Shard
	Checkpoint string // digest of the policy that it made; "" if it made none
}

// Pieces returns what a finished step committed, in the order in which the stages ran, with the evaluation after it.
// For NoStep it returns the warm start and its evaluation. Measured times are left out.
func (v *Visible) Pieces(ctx context.Context, step int) ([]Piece, error) {
	var refs []schema.Ref
	if step != NoStep {
		i := slices.Index(v.steps, step)
		if i < 0 {
			return nil, fmt.Errorf("%w: step %d of run %s", ErrNoStep, step, v.run)
		}
		for stage := range v.heads[i].Stages {
			refs = append(refs, v.chosen(v.heads[i], stage)...)
		}
	}
	manifests, err := v.record.readAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(manifests, func(a, b schema.Manifest) int { return compareRuns(a.Place, b.Place) })
	alone, err := v.withoutHeadAt(ctx, step)
	if err != nil {
		return nil, err
	}
	var out []Piece
	for _, m := range append(manifests, alone...) {
		parts, err := v.record.readAll(ctx, m.Parts)
		if err != nil {
			return nil, err
		}
		p := Piece{Step: step, Stage: m.Stage, Try: m.Try, Turn: m.Turn}
		if m.Checkpoint != nil {
			p.Checkpoint = m.Checkpoint.Digest
		}
		for _, made := range append([]schema.Manifest{m}, parts...) {
			for _, s := range made.Shards {
				p.Shards = append(p.Shards, Shard{ShardInfo: s, Run: v.run, Step: step, Gen: made.Gen})
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// withoutHeadAt reads the manifests of a step that no head names: its evaluation and, before the first step, the data
// stage and the warm start.
func (v *Visible) withoutHeadAt(ctx context.Context, step int) ([]schema.Manifest, error) {
	places := []schema.Place{schema.At(v.run, step, schema.StageEvaluate)}
	if step == NoStep {
		places = []schema.Place{schema.AtInit(v.run, schema.StageData),
			schema.AtInit(v.run, schema.StageWarmStart), schema.AtInit(v.run, schema.StageEvaluate)}
	}
	for i, p := range places {
		places[i] = owned(v.lineage, p)
	}
	found, _, err := v.record.lookups(ctx, places)
	return slices.DeleteFunc(found, func(m schema.Manifest) bool { return m.Stage == "" }), err
}

// compareRuns orders the places of a step by when they ran: the draws of dynamic sampling one after the other, in each
// of them the turns, and after all draws the other stages.
func compareRuns(a, b schema.Place) int {
	order := stages.InStep()
	place := func(p schema.Place) (drawn, stage, own int) {
		own = slices.Index(order, p.Stage)
		stage = own
		if p.Stage == schema.StageSandbox { // it takes turns with the rollout
			stage = slices.Index(order, schema.StageRollout)
		}
		if own > slices.Index(order, schema.StageReward) {
			drawn = 1
		}
		return drawn, stage, own
	}
	aDrawn, aStage, aOwn := place(a)
	bDrawn, bStage, bOwn := place(b)
	return cmp.Or(aDrawn-bDrawn, a.Try-b.Try, aStage-bStage, a.Turn-b.Turn, aOwn-bOwn)
}

// EvaluationRows are the rows of one evaluation.
type EvaluationRows struct {
	Step int // NoStep for the warm start's
	Rows []schema.EvaluationRow
}

// EvaluationRows returns the rows of the run's evaluations, in the order of their steps.
func (v *Visible) EvaluationRows(ctx context.Context) ([]EvaluationRows, error) {
	manifests, err := v.withoutHead(ctx, schema.Evaluations)
	if err != nil {
		return nil, err
	}
	out := make([]EvaluationRows, len(manifests))
	err = rescue.Each(ctx, fetches, len(manifests), func(ctx context.Context, i int) (err error) {
		out[i].Step = placed(manifests[i])
		out[i].Rows, err = rowsIn[schema.EvaluationRow](ctx, v.record, manifests[i])
		return err
	})
	return out, err
}
