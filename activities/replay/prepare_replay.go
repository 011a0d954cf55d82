package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/selection"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// PrepareReplay finds what a replay reads, resolves its recipe, and claims a generation of the step that nothing else
// uses, by committing a manifest of stage replay there.
type PrepareReplay struct{ *stage.Worker }

// The notes of a claim.
const (
	noteClaim   = "claim"   // who made the claim
	noteFrom    = "from"    // first stage
	noteThrough = "through" // last stage
	noteSet     = "set"     // overrides, a JSON list
)

// Execute claims only once, however often it is tried: a claim with the same name is adopted. It refuses stages that
// cannot be replayed, and damaged inputs, before anything is written.
func (a PrepareReplay) Execute(ctx context.Context, e *stage.Env, in api.ReplayInput) (out api.ReplayPrepared,
	err error) {
	out.Timing = api.Timing{Stage: schema.StageReplay, Shard: -1, Turn: -1}
	at := api.Scope{Run: in.Run, Step: in.Step}
	err = a.Track(ctx, e, at, &out.Timing, func(ctx context.Context, p *stage.Progress) error {
		return a.prepare(ctx, in, &out, p)
	})
	return out, err
}

func (a PrepareReplay) prepare(ctx context.Context, in api.ReplayInput, out *api.ReplayPrepared,
	p *stage.Progress) error {
	made, err := stepStages(ctx, a.Worker.Records, in.Run, in.Step)
	if err != nil {
		return err
	}
	if of := made.Owner; of != in.Run {
		return badinput.Errorf("step: step %d of run %s is one of run %s, with which it shares it: replay it there",
			in.Step, in.Run, of)
	}
	if done, err := a.adoptClaim(ctx, made, in.Claim, out); done || err != nil {
		return err
	}
	plan, recipe, err := a.planned(ctx, made, in, out)
	if err != nil {
		return err
	}
	if err := a.readInputs(ctx, plan, p); err != nil {
		return err
	}
	if plan.Has(schema.StageResample) {
		out.Chain = selection.Chain(recipe, 0).String()
	}
	return a.claim(ctx, in, plan, recipe, out)
}

// planned finds what the replay reads, and its recipe. It writes nothing.
func (a PrepareReplay) planned(ctx context.Context, made *Made, in api.ReplayInput,
	out *api.ReplayPrepared) (*Plan, *recipes.Recipe, error) {
	plan := NewPlan(made, in.Stages, in.Follow)
	base, err := a.madeBefore(ctx, plan)
	if err != nil {
		return nil, nil, err
	}
	recipe, err := Recipe(in.Run, &base.Recipe, in.Set, plan.Stages)
	if err != nil {
		return nil, nil, err
	}
	if plan.Fit(recipe.Needs()); !slices.Equal(plan.Stages, in.Stages) {
		out.Stages = plan.Stages
	}
	if err := a.findInputs(ctx, plan, out); err != nil {
		return nil, nil, err
	}
	// a replay asks no judge, so it needs none
	if err := prepare.Implemented(recipe.Name, recipe.Planned()); err != nil {
		return nil, nil, err
	}
	r := &replayed{in: in, plan: plan, before: &base.Recipe, recipe: recipe, out: out}
	if plan.Has(schema.StageUpdate) {
		if err := a.findPolicies(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	if !plan.Has(schema.StageReward) {
		return plan, recipe, nil
	}
	for _, source := range verdict.All {
		v := source(a.Worker)
		if !v.Asked(recipe) {
			continue
		}
		if none := v.Missing(); none == "" {
			err = a.findResults(ctx, r)
		} else {
			err = a.findVerdicts(ctx, r, v.Stage(), none)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return plan, recipe, nil
}

// replayed is a replay of the reward that is being prepared.
type replayed struct {
	in             api.ReplayInput
	plan           *Plan
	before, recipe *recipes.Recipe // of the step and of the replay
	out            *api.ReplayPrepared
}

// adoptClaim finds the generation that an earlier attempt of the same replay has claimed.
func (a PrepareReplay) adoptClaim(ctx context.Context, made *Made, claim string,
	out *api.ReplayPrepared) (bool, error) {
	for _, place := range made.Claims {
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

// findInputs finds what the replayed stages read from stages that are not replayed, and what they have committed
// before. What the reward reads depends on the replay's recipe too, which is not known yet: see planned.
func (a PrepareReplay) findInputs(ctx context.Context, p *Plan, out *api.ReplayPrepared) error {
	if p.Has(schema.StageReward) || p.Has(schema.StageUpdate) { // whose policies are compared on them
		if err := a.findTrajectories(ctx, p, out); err != nil {
			return err
		}
	}
	for _, stage := range p.Stages {
		if stage == schema.StageReward {
			continue
		}
		if err := a.findReads(ctx, p, stage, out); err != nil {
			return err
		}
	}
	for _, stage := range p.Stages {
		if refs := p.Made.Refs[stage]; len(refs) > 0 {
			out.Before = append(out.Before, api.StageRef{Stage: stage, Ref: refs[0]})
		}
	}
	return a.findExcluded(ctx, p, out)
}

// findReads finds what a stage without shards reads, as it declares.
func (a PrepareReplay) findReads(ctx context.Context, p *Plan, stage string, out *api.ReplayPrepared) (err error) {
	declared, _ := stages.Of(stage)
	for _, read := range declared.Reads {
		refs := p.Made.Refs[read.Stage]
		if p.Has(read.Stage) || len(out.Made.All(read.Stage)) > 0 || len(refs) == 0 && !needed(read) {
			continue
		}
		if refs, err = p.Made.All(read.Stage, stage); err != nil {
			return err
		}
		for _, ref := range refs {
			out.Made = append(out.Made, api.StageRef{Stage: read.Stage, Ref: ref})
		}
		for _, table := range read.Tables {
			p.Read(table, refs...)
		}
	}
	if declared.Continues == "" {
		return nil
	}
	out.Buffer, err = learn.BufferOf(ctx, a.Records, p.Made.Run, strconv.Itoa(p.Made.Step-1))
	if out.Buffer != (schema.Ref{}) {
		for _, table := range declared.Writes {
			p.Read(table, out.Buffer)
		}
	}
	return err
}

// findExcluded finds the shards that the step skipped, if resample is replayed.
func (a PrepareReplay) findExcluded(ctx context.Context, p *Plan, out *api.ReplayPrepared) error {
	before := p.Made.Refs[schema.StageResample]
	if !p.Has(schema.StageResample) || len(before) == 0 {
		return nil
	}
	m, err := a.Record.Read(ctx, before[0])
	if err != nil {
		return err
	}
	if out.Excluded, err = learn.ExcludedShards(m); err != nil || len(out.Excluded) == 0 {
		return err
	}
	ref, err := p.Made.One(schema.StagePrompts, schema.StageResample)
	out.Made = append(out.Made, api.StageRef{Stage: schema.StagePrompts, Ref: ref})
	p.Read(schema.Prompts, ref)
	return err
}

func (a PrepareReplay) findTrajectories(ctx context.Context, p *Plan, out *api.ReplayPrepared) error {
	ref, err := p.Made.One(schema.StageAssemble, p.Stages[0])
	if err != nil {
		return err
	}
	if out.Trajectories, err = a.shardsOf(ctx, ref); err != nil {
		return err
	}
	p.Read(schema.Trajectories, ref)
	c, err := a.Recipes.Config(ctx, p.Made.Recipe)
	if err == nil && c.Recipe.Environment.Declaration().Interactive {
		p.Read(schema.Transitions, p.Made.Refs[schema.StageSandbox]...)
	}
	return err
}

// findVerdicts finds the verdicts of a stage that a reward reads. If the step has none, it refuses with the text, which
// takes step and run.
func (a PrepareReplay) findVerdicts(ctx context.Context, r *replayed, stage, none string) error {
	refs := r.plan.Made.Refs[stage]
	if len(refs) == 0 {
		return badinput.Errorf(none, r.plan.Made.Step, r.plan.Made.Run)
	}
	found, err := a.shardsOf(ctx, refs[0])
	r.out.Verdicts = append(r.out.Verdicts, found...)
	declared, _ := stages.Of(stage)
	r.plan.Read(declared.Writes[0], refs[0])
	return err
}

// shardsOf lists the shards of a stage.
func (a PrepareReplay) shardsOf(ctx context.Context, stage schema.Ref) ([]api.ShardRef, error) {
	m, err := a.Record.Read(ctx, stage)
	if err != nil {
		return nil, err
	}
	var out []api.ShardRef
	for _, part := range m.Parts {
		place, err := schema.ParseManifestKey(part.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", commit.ErrDamaged, stage.Key, err)
		}
		out = append(out, api.ShardRef{Shard: place.Shard, Ref: part})
	}
	return out, nil
}

// madeBefore returns the recipe that the first replayed stage was made under, or the run's recipe if the step has not
// reached that stage.
func (a PrepareReplay) madeBefore(ctx context.Context, p *Plan) (*resolver.Config, error) {
	first := slices.IndexFunc(p.Stages, func(stage string) bool { return len(p.Made.Refs[stage]) > 0 })
	if first < 0 {
		return a.Recipes.Config(ctx, p.Made.Recipe)
	}
	m, err := a.Record.Read(ctx, p.Made.Refs[p.Stages[first]][0])
	if err != nil {
		return nil, err
	}
	recipe, err := record.MadeUnder(m)
	if err != nil {
		return nil, err
	}
	if recipe != p.Made.Recipe {
		p.Recipes = append(p.Recipes, recipe)
	}
	return a.Recipes.Config(ctx, recipe)
}

// readInputs reads every shard that the replay will read, so that a damaged or missing shard is found before anything
// is written.
func (a PrepareReplay) readInputs(ctx context.Context, plan *Plan, p *stage.Progress) error {
	reads := plan.Reads()
	for i, r := range reads {
		m, err := a.Record.Read(ctx, r.Ref)
		if err != nil {
			return err
		}
		shards, err := a.Record.Shards(ctx, r.Table, m)
		if err != nil {
			return err
		}
		for _, s := range shards {
			if _, err := a.Record.ReadShard(ctx, s); err != nil {
				return err
			}
		}
		p.Set(i+1, len(reads))
	}
	return nil
}

// claim commits the replay's manifest in the first free generation.
func (a PrepareReplay) claim(ctx context.Context, in api.ReplayInput, p *Plan, recipe *recipes.Recipe,
	out *api.ReplayPrepared) error {
	text, err := recipe.Canonical()
	if err != nil {
		return err
	}
	for gen := p.Made.Next; ; gen++ {
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

func (a PrepareReplay) claimOf(ctx context.Context, in api.ReplayInput, p *Plan, recipe []byte,
	out *api.ReplayPrepared) (schema.Manifest, error) {
	place := schema.At(in.Run, in.Step, schema.StageReplay).WithGen(out.Gen)
	m := schema.NewManifest(place, a.Code, schema.Digest(recipe))
	shard, err := a.Record.Shard(ctx, place, schema.Documents, recipe, 1)
	if err != nil {
		return m, err
	}
	result, err := stage.ResultNote(out)
	if err != nil {
		return m, err
	}
	set, err := json.Marshal(append([]string{}, in.Set...))
	if err != nil {
		return m, fmt.Errorf("encode overrides: %w", err)
	}
	m.Shards = append(m.Shards, shard)
	m.Inputs = p.Inputs()
	m.Note = map[string]string{
		noteClaim: in.Claim, noteFrom: p.Stages[0], noteThrough: p.Stages[len(p.Stages)-1], noteSet: string(set),
		schema.NoteResult: string(result),
	}
	if out.Problems != (schema.Ref{}) { // the stage that calls code compares it with the run's
		c, err := a.Recipes.Config(ctx, p.Made.Recipe)
		if err != nil {
			return m, err
		}
		maps.Copy(m.Note, c.Code)
	}
	return m, nil
}
