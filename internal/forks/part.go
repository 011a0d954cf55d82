package forks

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Part is what a fork at a stage has of the step after the shared ones: what the other run has committed before that
// stage. A head names manifests of one run, so the fork gets copies, under its own name and recipe, as if it had made
// them itself. Its step adopts them.
type Part struct {
	*Point
	stages []string     // that are copied
	refs   []schema.Ref // their manifests, in the order of the step
}

// forkable lists the stages at which a run can be forked.
func forkable() []string {
	return stages.Named(func(s stages.Stage) bool { return s.Pure && !s.Optional() })
}

// Part finds what a fork at a stage shares of the step after the point. It refuses changes that a copied stage reads.
func (p *Point) Part(ctx context.Context, from string, set []string) (*Part, error) {
	if !slices.Contains(forkable(), from) {
		return nil, badinput.Errorf("from: a run can be forked at %s, got %q", strings.Join(forkable(), ", "), from)
	}
	for _, s := range set {
		path, _, _ := strings.Cut(s, "=")
		if !free(from, path) {
			return nil, badinput.Errorf("--set %s: what the fork shares of step %d may follow from it; change what %s "+
				"and the stages after it read, or fork the run without from", s, p.Step+1, from)
		}
	}
	out := &Part{Point: p, stages: before(from)}
	if err := out.find(ctx); err != nil {
		return nil, err
	}
	last := out.stages[len(out.stages)-1]
	if !slices.ContainsFunc(out.refs, func(ref schema.Ref) bool { return stageOf(ref) == last }) {
		return nil, badinput.Errorf("step: run %s has not committed %s of step %d, which %s reads; fork it without "+
			"from, or later", p.Run, last, p.Step+1, from)
	}
	return out, nil
}

// before lists the stages that a fork at a stage shares. Verdicts on answers, and the outputs of models for kept
// tokens, depend on the settings that the fork may change: it asks for them again.
func before(from string) []string {
	names := stages.InStep()
	names = names[:slices.Index(names, from)]
	if from == schema.StageReward {
		return names[:slices.Index(names, schema.StageAssemble)+1]
	}
	return slices.DeleteFunc(slices.Clone(names), func(stage string) bool {
		return stage == stages.Commit || stage == schema.StageLogprobs
	})
}

// apart are the sections of a recipe that no stage of a step follows from, up to its update.
var apart = []string{"steps", "evaluation", "checkpoint", "record", "engine", "judge", "token_outputs"}

// free reports whether a fork at a stage can change a field of the recipe. The draws of the rollout follow from the
// seed.
func free(from, path string) bool {
	under := func(part string) bool { return path == part || strings.HasPrefix(path, part+".") }
	if slices.ContainsFunc(apart, under) {
		return true
	}
	later := stages.Replayable()
	for _, stage := range later[slices.Index(later, from):] {
		declared, _ := stages.Of(stage)
		if slices.ContainsFunc(declared.Recipe, under) {
			return path != "seed"
		}
	}
	return false
}

// find finds the manifests of the stages that the step's head names or, if it has none yet, that the run itself has
// committed.
func (s *Part) find(ctx context.Context) error {
	step := strconv.Itoa(s.Step + 1)
	head, _, found, err := s.record.Head(ctx, s.Run, step)
	if err != nil {
		return err
	}
	made := head.Stages
	if !found {
		if made, err = s.present(ctx, step); err != nil {
			return err
		}
	}
	for _, stage := range s.stages {
		s.refs = append(s.refs, made[stage]...)
	}
	for _, ref := range slices.Concat(s.refs, made[schema.StageResample]) {
		m, err := s.record.Read(ctx, ref)
		switch {
		case err != nil:
			return err
		case m.Inputs[0] != s.Config:
			return badinput.Errorf("step: step %s of run %s was taken under another recipe than step %d; fork the run "+
				"without from", step, s.Run, s.Step)
		case m.Note[schema.NoteExcludedShards] != "":
			return badinput.Errorf("step: step %s of run %s has skipped shards; fork the run without from", step, s.Run)
		}
	}
	return nil
}

// present lists the stage manifests of a step without a head, of the generation that the run began with.
func (s *Part) present(ctx context.Context, step string) (map[string][]schema.Ref, error) {
	prefix := fmt.Sprintf("%sstep=%s/", schema.ManifestsPrefix(s.Run), step)
	listed, err := s.record.Store().List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	var places []schema.Place
	for _, o := range listed {
		p, err := schema.ParseManifestKey(o.Key)
		if err != nil {
			return nil, err
		}
		if p.Shard < 0 && p.Try < 0 && p.Gen == 0 {
			places = append(places, p)
		}
	}
	slices.SortStableFunc(places, func(x, y schema.Place) int { return x.Turn - y.Turn })
	out := map[string][]schema.Ref{}
	for _, p := range places {
		_, ref, found, err := s.record.Lookup(ctx, p)
		if err != nil {
			return nil, err
		}
		if found {
			out[p.Stage] = append(out[p.Stage], ref)
		}
	}
	return out, nil
}

// Copy copies the manifests, and the rows that they hold, to a run whose recipe the manifest recipe commits. A second
// call copies what an interrupted one has not. Of stages with shards it copies the shards alone: the run commits the
// stage itself, as it does its own.
func (s *Part) Copy(ctx context.Context, run string, recipe schema.Ref, config string) error {
	c := &copying{Part: s, run: run, recipe: recipe, config: config}
	for _, ref := range s.refs {
		m, err := s.record.Read(ctx, ref)
		if err != nil {
			return err
		}
		parts := m.Parts
		if len(parts) == 0 {
			parts = []schema.Ref{ref}
		}
		if err := rescue.Each(ctx, sharing, len(parts), func(ctx context.Context, i int) error {
			_, err := c.copy(ctx, parts[i])
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// copying is a copy under way.
type copying struct {
	*Part
	run    string
	recipe schema.Ref
	config string
	made   sync.Map // of refs: copies, by what they are copies of
}

// copy returns the run's copy of a manifest. If there is none yet, it copies the inputs and then the manifest. One that
// is no part of the step stays the other run's.
func (c *copying) copy(ctx context.Context, ref schema.Ref) (schema.Ref, error) {
	place, err := schema.ParseManifestKey(ref.Key)
	if err != nil || place.Step != strconv.Itoa(c.Step+1) || !slices.Contains(c.stages, place.Stage) {
		return ref, err
	}
	if to, done := c.made.Load(ref); done {
		return to.(schema.Ref), nil
	}
	m, err := c.record.Read(ctx, ref)
	if err != nil {
		return ref, err
	}
	m.Run, m.Gen, m.Config = c.run, 0, c.config
	for i, shard := range m.Shards {
		data, err := c.record.ReadShard(ctx, shard)
		if err != nil {
			return ref, err
		}
		if m.Shards[i], err = c.record.Shard(ctx, m.Place, shard.Table, data, shard.Rows); err != nil {
			return ref, err
		}
	}
	for _, named := range [][]schema.Ref{m.Inputs, m.Parts} {
		for i := range named {
			if named[i], err = c.copy(ctx, named[i]); err != nil {
				return ref, err
			}
		}
	}
	m.Inputs[0] = c.recipe // every manifest names the recipe first
	_, to, _, err := c.record.Commit(ctx, m)
	if err != nil {
		return ref, err
	}
	c.made.Store(ref, to)
	return to, nil
}

// stageOf returns the stage that a ref names a manifest of; "" for other objects.
func stageOf(ref schema.Ref) string {
	p, err := schema.ParseManifestKey(ref.Key)
	if err != nil {
		return ""
	}
	return p.Stage
}
