package warmstart

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// given are demonstrations that a recipe names instead of a script's.
type given struct {
	rows   [][]learner.Demo // of each demonstration: one row, or one for each turn where prompts are whole
	digest string           // of what they were read from
	inputs []schema.Ref
}

// givenDemonstrations reads the demonstrations that the recipe names; nil if a script writes them, as
// it does those of a form.
func (a WarmStart) givenDemonstrations(ctx context.Context, in api.Scope, recipe *recipes.Recipe) (*given, error) {
	d := recipe.WarmStart.Demonstrations
	switch {
	case d == nil || d.Form:
		return nil, nil
	case d.File != "":
		return a.ofFile(ctx, recipe, *d)
	case d.Run == in.Run:
		return nil, badinput.Errorf("warm_start.demonstrations.run: %s is this run", d.Run)
	}
	return a.ofRun(ctx, recipe, *d)
}

// ofFile renders the conversations of a file.
func (a WarmStart) ofFile(ctx context.Context, recipe *recipes.Recipe, d recipes.Demonstrations) (*given, error) {
	data, err := dataset.ReadWhole(ctx, d.File, d.Digest, int64(d.MaxMB)<<20, a.Recipes.Fetch)
	if err != nil {
		return nil, fmt.Errorf("warm_start.demonstrations.file: %w", err)
	}
	conversations, err := openai.ReadDemonstrations(data)
	if err != nil {
		return nil, badinput.Errorf("warm_start.demonstrations.file: %s: %v", d.File, err)
	}
	loop, err := a.Recipes.Loop(recipe, resolver.RolloutSampling(recipe))
	if err != nil {
		return nil, err
	}
	out := &given{digest: d.Digest, rows: make([][]learner.Demo, len(conversations))}
	for i, c := range conversations {
		shown, err := loop.Recorded(ctx, env.Task{ID: strconv.Itoa(i), Level: 1, Text: c.Question}, moves(c), i)
		if err != nil {
			return nil, badinput.Errorf("warm_start.demonstrations.file: %s: line %d: item %d: %v",
				d.File, c.Line, i, err)
		}
		out.rows[i] = demosOf(shown.Sequences())
	}
	return out, nil
}

// moves are the moves of a conversation.
func moves(c openai.Demonstration) []rollout.RecordedMove {
	out := make([]rollout.RecordedMove, len(c.Steps))
	for i, s := range c.Steps {
		m := &out[i]
		if s.Call == nil {
			m.Thought, m.Answer = rollout.FinalAnswer(s.Text)
			continue
		}
		m.Thought, m.Result = s.Text, s.Tool
		if code, ok := programOf(*s.Call); ok {
			m.Code = code
		} else {
			m.Tool, m.Arguments = s.Call.Name, s.Call.Arguments
		}
	}
	return out
}

func demosOf(tokens, masks [][]int32) []learner.Demo {
	out := make([]learner.Demo, len(tokens))
	for i := range out {
		out[i] = learner.Demo{TokenIDs: tokens[i], LossMask: masks[i]}
	}
	return out
}

// ofRun reads the trajectories of a run's finished steps, the successful ones unless the recipe wants all.
func (a WarmStart) ofRun(ctx context.Context, recipe *recipes.Recipe, d recipes.Demonstrations) (*given, error) {
	if err := a.sameTokens(ctx, recipe, d.Run); err != nil {
		return nil, err
	}
	out := &given{}
	for step := 1; ; step++ {
		head, _, found, err := a.Record.Head(ctx, d.Run, strconv.Itoa(step))
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		turns, rewards := head.Stages[schema.StageRollout], head.Stages[schema.StageReward]
		if len(turns) == 0 || len(rewards) == 0 {
			return nil, refusal.Corruptf("warm_start.demonstrations.run: step %d of run %s has no rewards", step, d.Run)
		}
		if err := a.stepDemonstrations(ctx, recipe, d.All, turns, rewards, out); err != nil {
			return nil, err
		}
		out.inputs = append(out.inputs, slices.Concat(turns, rewards)...)
	}
	if len(out.rows) == 0 {
		return nil, badinput.Errorf("warm_start.demonstrations.run: run %s has no successful "+
			"trajectory in its finished steps", d.Run)
	}
	text, err := schema.Canonical(out.inputs)
	out.digest = schema.Digest(text)
	return out, err
}

// stepDemonstrations adds those of one step, in the record's order.
func (a WarmStart) stepDemonstrations(ctx context.Context, recipe *recipes.Recipe, all bool,
	from, rewards []schema.Ref, out *given) error {
	scored, err := record.Read[schema.RewardRow](ctx, a.Records, rewards...)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, r := range scored {
		wanted[r.TrajectoryID] = all || r.Success
	}
	rows, err := record.WholeTurns(ctx, a.Records, from...)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(t schema.TurnRow) bool { return !wanted[t.TrajectoryID] || t.Excluded != nil })
	slices.SortStableFunc(rows, func(x, y schema.TurnRow) int {
		return cmp.Or(cmp.Compare(x.TrajectoryID, y.TrajectoryID), cmp.Compare(x.Turn, y.Turn))
	})
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].TrajectoryID == rows[0].TrajectoryID {
			n++
		}
		turns := make([]rollout.RecordedTurn, n)
		for i, t := range rows[:n] {
			turns[i] = rollout.RecordedTurn{Tokens: t.TokenIDs, Mask: t.LossMask, Summary: t.IsSummary()}
		}
		demos := demosOf(rollout.SequencesOf(turns, recipe.Whole()))
		for _, one := range demos {
			shape, err := a.Recipes.Shape(recipe)
			if err != nil {
				return err
			}
			if most := shape.Positions; len(one.TokenIDs) > most {
				return badinput.Errorf("warm_start.demonstrations.run: trajectory %s has %d tokens, "+
					"and policy.max_positions is %d", rows[0].TrajectoryID, len(one.TokenIDs), most)
			}
		}
		out.rows, rows = append(out.rows, demos), rows[n:]
	}
	return nil
}

// sameTokens refuses a run whose tokens mean something else to this recipe's policy.
func (a WarmStart) sameTokens(ctx context.Context, recipe *recipes.Recipe, run string) error {
	_, ref, found, err := a.Record.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err != nil {
		return err
	}
	if !found {
		return badinput.Errorf("warm_start.demonstrations.run: run %s has committed no recipe in %s", run, a.Store)
	}
	c, err := a.Recipes.Config(ctx, ref)
	if err != nil {
		return err
	}
	theirs, err := a.Recipes.TokenizerDigest(ctx, &c.Recipe)
	if err != nil {
		return err
	}
	ours, err := a.Recipes.TokenizerDigest(ctx, recipe)
	if err != nil {
		return err
	}
	if theirs != ours || c.Recipe.Whole() != recipe.Whole() {
		return badinput.Errorf("warm_start.demonstrations.run: run %s has another tokenizer or "+
			"prompt format: its environment, protocol and tools must be this recipe's", run)
	}
	return nil
}

// rowsToClone returns n rows: each demonstration once, in a seeded order, before any repeats.
func (g *given) rowsToClone(seed uint64, n int) (demos []learner.Demo, tokens int) {
	order := dataset.NewOrder("given demonstrations", len(g.rows))
	for i := 0; len(demos) < n; i++ {
		for _, one := range g.rows[order.At(seed, i)] {
			demos = append(demos, one)
			tokens += len(one.TokenIDs)
		}
	}
	return demos, tokens
}

// programOf returns the program of a call of the Python tool; ok is false for a call of another tool.
func programOf(c openai.Call) (code string, ok bool) {
	if c.Name != tools.Python.Name && !slices.Contains(tools.Python.Aliases, c.Name) {
		return "", false
	}
	var arguments struct {
		Code *string `json:"code"`
	}
	if json.Unmarshal([]byte(c.Arguments), &arguments) != nil || arguments.Code == nil {
		return "", false
	}
	return *arguments.Code, true
}
