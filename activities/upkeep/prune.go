package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
)

// PruneCheckpoints deletes the checkpoints that the recipe's section checkpoint does not keep. It runs alongside the
// next step. The workflow carries its state (api.Retention), so that each pruning reads only two steps of the
// record, however many steps the run has.
//
// It keeps the checkpoints of the latest keep_last steps, of every step divisible by every, of the keep_best
// evaluated steps, and of the next step's reference. A step whose update changed nothing shares its predecessor's
// checkpoint: such a checkpoint is kept as long as one of its steps is kept. A warm start is never deleted.
type PruneCheckpoints struct{ *stage.Worker }

// Pruned is the note that replaces a pruned checkpoint: the checkpoint's manifest stays, and the note says what was
// deleted.
type Pruned struct {
	Checkpoint schema.Checkpoint `json:"checkpoint"`
	Why        string            `json:"why"`
}

// mostCarried bounds the entries of a retention that a payload carries (some 100 bytes each). A larger retention is
// read from the record each time.
const mostCarried = 4000

// Execute prunes for the scope's step. A second attempt repeats the work of the first and ends in the same state.
func (a PruneCheckpoints) Execute(ctx context.Context, e *stage.Env, in api.PruneInput) (out api.Pruned, err error) {
	out.Timing = api.Timing{Stage: stages.Prune, Shard: -1, Turn: -1}
	err = a.Track(ctx, e, in.Scope, &out.Timing, func(ctx context.Context, p *stage.Progress) error {
		recipe, err := a.Recipes.Recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		out.Steps, out.Retention, err = prune(ctx, a.Worker.Records, in, recipe, p.Set)
		if err != nil {
			return fmt.Errorf("%s: %w", stages.Prune, err)
		}
		return nil
	})
	if n := len(out.Retention.Spared) + len(out.Retention.Best); n > mostCarried {
		out.Retention = api.Retention{}
	}
	return out, err
}

// prune deletes the checkpoints that are no longer needed up to the scope's step. It returns the first step of each
// deleted checkpoint.
func prune(ctx context.Context, r record.Records, in api.PruneInput, recipe *recipes.Recipe,
	report func(done, total int)) ([]int, api.Retention, error) {
	p := pruning{records: r, run: in.Run, rule: api.RetentionRule(recipe.Checkpoint), report: report}
	p.rule.KeepLast = max(1+recipe.Staleness(), p.rule.KeepLast) // the next steps are sampled from them
	p.limit, p.reference = in.Step-p.rule.KeepLast, recipe.ReferenceStep(in.Step+1)
	if known := in.Retention; known != nil && known.Rule != nil && *known.Rule == p.rule {
		p.state = api.Retention{Past: known.Past, Spared: slices.Clone(known.Spared), Best: slices.Clone(known.Best)}
	} else if err := p.rebuild(ctx, in.Step); err != nil {
		return nil, api.Retention{}, err
	}
	p.state.Rule = &p.rule
	p.state.Best = append(p.state.Best, in.Evaluated...)
	steps, err := p.execute(ctx)
	return steps, p.state, err
}

// pruning is one execution of PruneCheckpoints.
type pruning struct {
	records   record.Records
	run       string
	rule      api.RetentionRule
	limit     int // the last step that keep_last does not protect
	reference int // the step whose policy is the next step's reference
	state     api.Retention
	report    func(done, total int)
}

func (p *pruning) execute(ctx context.Context) ([]int, error) {
	p.rankEvaluations()
	for first := p.state.Past + 1; p.state.Past < p.limit; {
		if err := p.pass(ctx, p.state.Past+1); err != nil {
			return nil, err
		}
		p.report(p.state.Past-first+1, p.limit-first+1)
	}
	return p.sweep(ctx)
}

// rankEvaluations keeps the best evaluations; of two equal ones, the later is better.
func (p *pruning) rankEvaluations() {
	slices.SortFunc(p.state.Best, func(x, y api.EvaluatedStep) int {
		return cmp.Or(cmp.Compare(y.Success, x.Success), cmp.Compare(y.Step, x.Step))
	})
	p.state.Best = slices.CompactFunc(p.state.Best, func(x, y api.EvaluatedStep) bool { return x.Step == y.Step })
	p.state.Best = p.state.Best[:min(p.rule.KeepBest, len(p.state.Best))]
}

// pass adds the checkpoints of a step that keep_last no longer protects.
func (p *pruning) pass(ctx context.Context, step int) error {
	prefixes, err := p.prefixes(ctx, step)
	if err != nil {
		return err
	}
	for _, prefix := range prefixes {
		i := slices.IndexFunc(p.state.Spared, func(s api.SparedCheckpoint) bool { return s.Prefix == prefix })
		if i < 0 {
			p.state.Spared = append(p.state.Spared, api.SparedCheckpoint{Prefix: prefix, First: step, Last: step})
			continue
		}
		p.state.Spared[i].Last = step
	}
	p.state.Past = step
	return nil
}

// prefixes are the places of the run's own checkpoints that a step ends with: its policy's and its critic's.
func (p *pruning) prefixes(ctx context.Context, step int) ([]string, error) {
	m, _, found, err := p.records.UpdateOf(ctx, p.run, step)
	if err != nil || !found {
		return nil, err
	}
	var out []string
	for _, c := range m.Checkpoints() {
		if _, ok := prunable(p.run, c.Prefix); ok {
			out = append(out, c.Prefix)
		}
	}
	return out, nil
}

// sweep deletes the checkpoints that no rule keeps. It drops them from the state, and also the checkpoints that are
// kept for good.
func (p *pruning) sweep(ctx context.Context) ([]int, error) {
	if len(p.state.Spared) == 0 {
		return nil, nil
	}
	open, err := p.prefixes(ctx, p.limit+1)
	if err != nil {
		return nil, err
	}
	forks, err := p.forks(ctx)
	if err != nil {
		return nil, err
	}
	var steps []int
	var left []api.SparedCheckpoint
	for _, s := range p.state.Spared {
		switch {
		case slices.ContainsFunc(forks, func(at int) bool { return s.First <= at && s.Last > at-p.rule.KeepLast }):
			left = append(left, s)
		case slices.Contains(open, s.Prefix), s.Has(p.reference),
			slices.ContainsFunc(p.state.Best, func(e api.EvaluatedStep) bool { return s.Has(e.Step) }):
			left = append(left, s)
		// One of its steps is divisible by every.
		case p.rule.Every > 0 && s.Last/p.rule.Every > (s.First-1)/p.rule.Every:
		default:
			if err := p.delete(ctx, s); err != nil {
				return nil, err
			}
			if !slices.Contains(steps, s.First) {
				steps = append(steps, s.First)
			}
		}
	}
	p.state.Spared = left
	return steps, nil
}

// forks lists the steps at which other runs fork off. Their first steps are sampled from the latest policies there.
func (p *pruning) forks(ctx context.Context) ([]int, error) {
	prefix := schema.ForksPrefix(p.run)
	notes, err := p.records.Store.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the forks of run %s: %w", p.run, err)
	}
	steps := make([]int, len(notes))
	for i, o := range notes {
		number, _, _ := strings.Cut(strings.TrimPrefix(o.Key, prefix+"step="), "/")
		if steps[i], err = strconv.Atoi(number); err != nil {
			return nil, fmt.Errorf("%s: is not the key of a note about a fork", o.Key)
		}
	}
	return steps, nil
}

// delete deletes the files of one checkpoint. It writes the note first, so that a half-deleted checkpoint counts as
// pruned.
func (p *pruning) delete(ctx context.Context, s api.SparedCheckpoint) error {
	m, _, found, err := p.records.UpdateOf(ctx, p.run, s.First)
	if err != nil || !found {
		return err
	}
	for _, c := range m.Checkpoints() {
		if c.Prefix == s.Prefix {
			return pruneCheckpoint(ctx, p.records, *c)
		}
	}
	return nil
}

func pruneCheckpoint(ctx context.Context, r record.Records, c schema.Checkpoint) error {
	note, err := schema.Canonical(Pruned{Checkpoint: c,
		Why: "neither every, keep_last nor keep_best of the recipe's checkpoint section keeps it"})
	if err != nil {
		return err
	}
	if err := r.Store.PutIfAbsent(ctx, c.Prefix+schema.PrunedFile, note); err != nil &&
		!errors.Is(err, store.ErrExists) {
		return fmt.Errorf("note that checkpoint %s is pruned: %w", c.Prefix, err)
	}
	for _, f := range c.Files {
		if f.At != "" {
			continue // belongs to another checkpoint
		}
		if err := r.Store.Delete(ctx, c.Prefix+f.Name); err != nil {
			return fmt.Errorf("prune %s%s: %w", c.Prefix, f.Name, err)
		}
	}
	return nil
}

// rebuild computes the state from the record, for a run that was resumed or whose rule has changed. It lists the
// run's checkpoints and looks only at those that still have files, so it does not touch deleted ones.
func (p *pruning) rebuild(ctx context.Context, now int) error {
	p.state = api.Retention{}
	if p.limit < 1 {
		return p.evaluations(ctx, now)
	}
	present, err := presentCheckpoints(ctx, p.records, p.run)
	if err != nil {
		return err
	}
	for i, prefix := range present {
		p.report(i, len(present))
		if err := p.find(ctx, prefix); err != nil {
			return err
		}
	}
	p.state.Past = p.limit
	return p.evaluations(ctx, now)
}

// find adds a checkpoint that has files, and the steps that end with it. A prefix that its step's manifest does not
// name is an orphan of an attempt that did not win; pruning ignores it.
func (p *pruning) find(ctx context.Context, prefix string) error {
	first, ok := prunable(p.run, prefix)
	if !ok || first > p.limit || p.rule.Every > 0 && first%p.rule.Every == 0 {
		return nil
	}
	s := api.SparedCheckpoint{Prefix: prefix, First: first, Last: first - 1}
	for step := first; step <= p.limit; step++ {
		prefixes, err := p.prefixes(ctx, step)
		if err != nil {
			return err
		}
		if !slices.Contains(prefixes, prefix) {
			break
		}
		s.Last = step
	}
	if s.Last >= s.First {
		p.state.Spared = append(p.state.Spared, s)
	}
	return nil
}

// evaluations reads the evaluations of the steps before now, if the rule depends on them.
func (p *pruning) evaluations(ctx context.Context, now int) error {
	if p.rule.KeepBest == 0 {
		return nil
	}
	for step := 1; step < now; step++ {
		m, _, found, err := p.records.Record.Lookup(ctx, schema.At(p.run, step, schema.StageEvaluate))
		if err != nil {
			return err
		}
		if found {
			p.state.Best = append(p.state.Best, api.EvaluatedStep{Step: step, Success: m.Stats[record.StatSuccess]})
		}
		p.report(step, now)
	}
	return nil
}

// presentCheckpoints lists the places of a run's checkpoints that have files, in the order of their steps.
func presentCheckpoints(ctx context.Context, r record.Records, run string) ([]string, error) {
	prefix := schema.RunPrefix(run) + checkpointsFolder
	objects, err := r.Store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var present []string
	for _, o := range objects {
		version, file, _ := strings.Cut(strings.TrimPrefix(o.Key, prefix), "/")
		if at := prefix + version + "/"; file != schema.PrunedFile && !slices.Contains(present[max(0, len(present)-1):],
			at) {
			present = append(present, at)
		}
	}
	return present, nil
}

const checkpointsFolder = "checkpoints/"

// prunable returns the step that made the checkpoint at a prefix. The checkpoints of a warm start and those from
// before the first step are not prunable: later checkpoints may share their files.
func prunable(run, prefix string) (step int, ok bool) {
	version, ok := strings.CutPrefix(prefix, schema.RunPrefix(run)+checkpointsFolder)
	if !ok {
		return 0, false
	}
	number, _, _ := strings.Cut(version, "-")
	step, err := strconv.Atoi(number)
	return step, err == nil && step > 0
}
