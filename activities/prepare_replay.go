package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// PrepareReplay finds what a replay reads, resolves its recipe, and claims a generation of the step
// that nothing else has, by committing a manifest of stage replay there.
type PrepareReplay struct{ *Deps }

// The notes of a claim.
const (
	noteClaim   = "claim"   // who has claimed
	noteFrom    = "from"    // first stage
	noteThrough = "through" // last stage
	noteSet     = "set"     // overrides, a JSON list
)

// Execute claims once, however often it is tried: a claim of the same name is adopted. What cannot
// be replayed, and inputs that are damaged, are refused before anything is written.
func (a PrepareReplay) Execute(ctx context.Context, in wire.ReplayInput) (wire.ReplayPrepared, error) {
	out := wire.ReplayPrepared{}
	timing := wire.Timing{Stage: wire.StageReplay, Shard: -1, Turn: -1}
	err := tracked(ctx, &timing, func(ctx context.Context, p *progress) error { return a.prepare(ctx, in, &out, p) })
	out.Timing = timing
	return out, err
}

func (a PrepareReplay) prepare(ctx context.Context, in wire.ReplayInput, out *wire.ReplayPrepared, p *progress) error {
	made, err := a.stepStages(ctx, in.Run, in.Step)
	if err != nil {
		return err
	}
	if done, err := a.adoptClaim(ctx, made, in.Claim, out); done || err != nil {
		return err
	}
	plan := &replayPlan{made: made, stages: in.Stages}
	if in.Follow && plan.has(wire.StageAdvantage) && !plan.has(wire.StageBuffer) && len(made.refs[wire.StageBuffer]) > 0 {
		plan.stages = append(slices.Clone(in.Stages), wire.StageBuffer)
		out.Stages = plan.stages
	}
	if err := a.findInputs(ctx, plan, out); err != nil {
		return err
	}
	base, err := a.madeBefore(ctx, plan, out.Before)
	if err != nil {
		return err
	}
	recipe, err := replayRecipe(in.Run, &base.recipe, in.Set, plan.stages)
	if err != nil {
		return err
	}
	if plan.has(wire.StageReward) && recipe.Reward.Symbolic {
		if err := a.findGradings(ctx, plan, out); err != nil {
			return err
		}
	}
	if err := a.readInputs(ctx, plan, p); err != nil {
		return err
	}
	if plan.has(wire.StageResample) {
		out.Chain = resampleOptions(recipe, wire.Scope{}).String()
	}
	return a.claim(ctx, in, plan, recipe, out)
}

// replayPlan is what a replay reads.
type replayPlan struct {
	made   *stepStages
	stages []string
	inputs []schema.Ref
	tables []schema.Table // what is read of each input
	// recipes holds the manifest of the recipe that the step was made under, where it is not the run's.
	recipes []schema.Ref
}

func (p *replayPlan) reads(table schema.Table, refs ...schema.Ref) {
	for _, ref := range refs {
		p.inputs, p.tables = append(p.inputs, ref), append(p.tables, table)
	}
}

func (p *replayPlan) has(stage string) bool { return slices.Contains(p.stages, stage) }

// adoptClaim finds the generation that an earlier attempt of the same replay has claimed.
func (a PrepareReplay) adoptClaim(ctx context.Context, made *stepStages, claim string, out *wire.ReplayPrepared) (bool, error) {
	for _, place := range made.claims {
		m, ref, found, err := a.Record.Lookup(ctx, place)
		if err != nil {
			return false, err
		}
		if found && m.Note[noteClaim] == claim {
			if err := json.Unmarshal([]byte(m.Note[schema.NoteResult]), out); err != nil {
				return false, fmt.Errorf("%w: result in %s: %w", commit.ErrDamaged, ref.Key, err)
			}
			out.Manifest, out.Adopted = ref, true
			return true, nil
		}
	}
	return false, nil
}

// findInputs finds what the first stages of a replay read of the stages before them, and what the
// replayed stages have committed before.
func (a PrepareReplay) findInputs(ctx context.Context, p *replayPlan, out *wire.ReplayPrepared) (err error) {
	if p.has(wire.StageReward) {
		if err := a.findTrajectories(ctx, p, out); err != nil {
			return err
		}
	} else if out.Rewards, err = p.made.one(wire.StageReward, p.stages[0]); err != nil {
		return err
	} else {
		p.reads(schema.Rewards, out.Rewards)
	}
	if p.has(wire.StageAdvantage) {
		if out.Turns, err = p.made.all(wire.StageRollout, wire.StageAdvantage); err != nil {
			return err
		}
		p.reads(schema.Turns, out.Turns...)
		if refs := p.made.refs[wire.StageForward]; len(refs) > 0 {
			out.Outputs = refs[0]
			p.reads(schema.TokenOutputs, out.Outputs)
		}
		if !p.has(wire.StageResample) {
			if out.Selection, err = p.made.one(wire.StageResample, wire.StageAdvantage); err != nil {
				return err
			}
			p.reads(schema.Selection, out.Selection)
		}
	}
	if p.has(wire.StageBuffer) {
		if err := a.findBuffer(ctx, p, out); err != nil {
			return err
		}
	}
	for _, stage := range p.stages {
		if refs := p.made.refs[stage]; len(refs) > 0 {
			out.Before = append(out.Before, wire.StageRef{Stage: stage, Ref: refs[0]})
		}
	}
	return a.findExcluded(ctx, p, out)
}

// findBuffer finds the buffer that the step before left, and the step's batch.
func (a PrepareReplay) findBuffer(ctx context.Context, p *replayPlan, out *wire.ReplayPrepared) (err error) {
	if out.Buffer, err = a.bufferOf(ctx, p.made.run, strconv.Itoa(p.made.step-1)); err != nil {
		return err
	}
	if out.Buffer != (schema.Ref{}) {
		p.reads(schema.Replay, out.Buffer)
		p.reads(schema.Baselines, out.Buffer)
	}
	if !p.has(wire.StageAdvantage) {
		if out.Batch, err = p.made.one(wire.StageAdvantage, wire.StageBuffer); err != nil {
			return err
		}
		p.reads(schema.Batch, out.Batch)
	}
	return nil
}

// findExcluded finds the shards that the step went on without, where resample is replayed.
func (a PrepareReplay) findExcluded(ctx context.Context, p *replayPlan, out *wire.ReplayPrepared) error {
	before := p.made.refs[wire.StageResample]
	if !p.has(wire.StageResample) || len(before) == 0 {
		return nil
	}
	m, err := a.Record.Read(ctx, before[0])
	if err != nil {
		return err
	}
	if out.Excluded, err = excludedShards(m); err != nil || len(out.Excluded) == 0 {
		return err
	}
	if out.Prompts, err = p.made.one(wire.StagePrompts, wire.StageResample); err != nil {
		return err
	}
	p.reads(schema.Prompts, out.Prompts)
	return nil
}

func (a PrepareReplay) findTrajectories(ctx context.Context, p *replayPlan, out *wire.ReplayPrepared) error {
	ref, err := p.made.one(wire.StageAssemble, wire.StageReward)
	if err != nil {
		return err
	}
	if out.Trajectories, err = a.shardsOf(ctx, ref); err != nil {
		return err
	}
	p.reads(schema.Trajectories, ref)
	return nil
}

// findGradings finds the symbolic verdicts that a reward reads. What was never asked cannot be replayed.
func (a PrepareReplay) findGradings(ctx context.Context, p *replayPlan, out *wire.ReplayPrepared) (err error) {
	refs := p.made.refs[wire.StageGrade]
	if len(refs) == 0 {
		return refuse(wire.FailBadInput, "reward.symbolic: step %d of run %s has committed no gradings, which a replay cannot make, for it needs the sandbox; "+
			"run the recipe again, or import the file again, with --set reward.symbolic=true", p.made.step, p.made.run)
	}
	if out.Gradings, err = a.shardsOf(ctx, refs[0]); err != nil {
		return err
	}
	p.reads(schema.Gradings, refs[0])
	return nil
}

// shardsOf lists the shards of a stage.
func (a PrepareReplay) shardsOf(ctx context.Context, stage schema.Ref) ([]wire.ShardRef, error) {
	m, err := a.Record.Read(ctx, stage)
	if err != nil {
		return nil, err
	}
	var out []wire.ShardRef
	for _, part := range m.Parts {
		place, err := schema.ParseManifestKey(part.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", commit.ErrDamaged, stage.Key, err)
		}
		out = append(out, wire.ShardRef{Shard: place.Shard, Ref: part})
	}
	return out, nil
}

// madeBefore returns the recipe that the first replayed stage was made under, or the run's where
// the step has not come so far.
func (a PrepareReplay) madeBefore(ctx context.Context, p *replayPlan, before []wire.StageRef) (*config, error) {
	if len(before) == 0 {
		return a.config(ctx, p.made.recipe)
	}
	m, err := a.Record.Read(ctx, before[0].Ref)
	if err != nil {
		return nil, err
	}
	recipe, err := madeUnder(m)
	if err != nil {
		return nil, err
	}
	if recipe != p.made.recipe {
		p.recipes = append(p.recipes, recipe)
	}
	return a.config(ctx, recipe)
}

// readInputs reads every shard that the replay is going to read, so that a damaged or missing one
// is found before anything is written.
func (a PrepareReplay) readInputs(ctx context.Context, plan *replayPlan, p *progress) error {
	for i, ref := range plan.inputs {
		m, err := a.Record.Read(ctx, ref)
		if err != nil {
			return err
		}
		shards, err := a.Record.Shards(ctx, plan.tables[i], m)
		if err != nil {
			return err
		}
		for _, s := range shards {
			if _, err := a.Record.ReadShard(ctx, s); err != nil {
				return err
			}
		}
		p.set(i+1, len(plan.inputs))
	}
	return nil
}

// claim commits the replay's manifest in the first generation that is free.
func (a PrepareReplay) claim(ctx context.Context, in wire.ReplayInput, p *replayPlan, recipe *recipes.Recipe, out *wire.ReplayPrepared) error {
	text, err := recipe.Canonical()
	if err != nil {
		return err
	}
	for gen := p.made.next; ; gen++ {
		out.Gen = gen
		m, err := a.claimOf(ctx, in, p, text, out)
		if err != nil {
			return err
		}
		committed, ref, adopted, err := a.Record.Commit(ctx, m)
		if err != nil {
			return err
		}
		if !adopted || committed.Note[noteClaim] == in.Claim {
			out.Manifest = ref
			return nil
		}
	}
}

func (a PrepareReplay) claimOf(ctx context.Context, in wire.ReplayInput, p *replayPlan, recipe []byte, out *wire.ReplayPrepared) (schema.Manifest, error) {
	place := schema.At(in.Run, in.Step, wire.StageReplay).WithGen(out.Gen)
	m := schema.NewManifest(place, a.Code, schema.Digest(recipe))
	shard, err := a.Record.Shard(ctx, place, schema.Documents, recipe, 1)
	if err != nil {
		return m, err
	}
	result, err := resultJSON(out)
	if err != nil {
		return m, err
	}
	set, err := json.Marshal(append([]string{}, in.Set...))
	if err != nil {
		return m, fmt.Errorf("encode overrides: %w", err)
	}
	m.Shards = append(m.Shards, shard)
	m.Inputs = slices.Concat([]schema.Ref{p.made.recipe}, p.recipes, p.inputs)
	m.Note = map[string]string{
		noteClaim: in.Claim, noteFrom: p.stages[0], noteThrough: p.stages[len(p.stages)-1], noteSet: string(set), schema.NoteResult: string(result),
	}
	return m, nil
}
