// Package compaction merges a step's small shards into one file for each table, so that readers of a long run open few
// files.
//
// Glossary. A *merged copy* holds the rows of all shards of one table of one step, in canonical order. A *compaction*
// is the manifest that commits a step's merged copies; its inputs are the manifests whose shards they copy. The shards
// and their manifests stay: they are what heads lead to, what stages and replays read, and what verify compares the
// copies with. A reader takes a merged copy instead of shards if the compaction names exactly the manifests in which
// the reader would look for them (stages.Visibility.Holding).
package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// ErrNotDone means that a step has no head yet, so that its shards are not complete.
var ErrNotDone = errors.New("the step is not done")

// Result is what a compaction did.
type Result struct {
	Tables  int  `json:"tables"` // that have a merged copy
	Shards  int  `json:"shards"` // that the merged copies copy
	Rows    int  `json:"rows"`
	Adopted bool `json:"adopted"` // the step had been compacted before
}

// Step merges the shards of a finished step. It may be called again, and by several workers at the same time: the first
// manifest stays, and what else was written is garbage. A step whose tables have one shard each gets a compaction
// without shards, so that it is not looked at again. code is the digest of the program.
func Step(ctx context.Context, w *commit.Writer, run string, step int, code string) (Result, error) {
	place := schema.At(run, step, schema.StageCompact)
	m, _, found, err := w.Lookup(ctx, place)
	if err != nil {
		return Result{}, err
	}
	if found {
		return result(m, true), nil
	}
	head, _, found, err := w.Head(ctx, run, place.Step)
	if err != nil {
		return Result{}, err
	}
	if head.From != "" { // the run that has made the step merges its shards
		return Result{Adopted: true}, nil
	}
	if !found {
		return Result{}, fmt.Errorf("compact step %d of run %s: %w", step, run, ErrNotDone)
	}
	c := compacting{record: w, place: place, head: head, code: code}
	if err := c.gather(ctx); err != nil {
		return Result{}, fmt.Errorf("compact step %d of run %s: %w", step, run, err)
	}
	if err := c.merge(ctx); err != nil {
		return Result{}, fmt.Errorf("compact step %d of run %s: %w", step, run, err)
	}
	m, _, adopted, err := w.Commit(ctx, c.manifest)
	return result(m, adopted), err
}

func result(m schema.Manifest, adopted bool) Result {
	out := Result{Tables: len(m.Shards), Shards: int(m.Stats[statShards]), Adopted: adopted}
	for _, s := range m.Shards {
		out.Rows += s.Rows
	}
	return out
}

// statShards counts the shards that were merged.
const statShards = "shards"

// compacting is one call of Step.
type compacting struct {
	record   *commit.Writer
	place    schema.Place
	head     schema.Head
	code     string
	refs     []schema.Ref // all manifests in which the step's tables are read
	manifest schema.Manifest
}

// gather lists the step's manifests, and begins the compaction's under the recipe of the step's update.
func (c *compacting) gather(ctx context.Context) error {
	for _, stage := range stages.InStep() {
		c.refs = append(c.refs, c.head.Stages[stage]...)
	}
	if len(c.refs) == 0 {
		return errors.New("its head names no manifests")
	}
	last, err := c.record.Read(ctx, c.refs[len(c.refs)-1])
	if err != nil {
		return err
	}
	c.manifest = schema.NewManifest(c.place, c.code, last.Config)
	for _, ref := range last.Inputs { // the recipe that it was made under
		p, err := schema.ParseManifestKey(ref.Key)
		if err == nil && p.Step == schema.InitStep && (p.Stage == schema.StagePrepare || p.Stage == schema.StageAmend) {
			c.manifest.Inputs = append(c.manifest.Inputs, ref)
		}
	}
	return c.gatherTimes(ctx)
}

// gatherTimes adds the manifests of measured times, if those of the step are recorded. If others follow, readers take
// the shards of this table.
func (c *compacting) gatherTimes(ctx context.Context) error {
	prefix := schema.ManifestsPrefix(c.place.Run) + "step=" + c.place.Step + "/" + timingsOf
	listed, err := c.record.Store().List(ctx, prefix)
	if err != nil {
		return fmt.Errorf("list %s: %w", prefix, err)
	}
	var refs []schema.Ref
	recorded := false
	for _, o := range listed {
		p, err := schema.ParseManifestKey(o.Key)
		if err != nil || p.Gen != 0 {
			continue
		}
		_, ref, found, err := c.record.Lookup(ctx, p)
		if err != nil {
			return err
		}
		if found {
			recorded = recorded || p.Stage == timingsOf+"step"
			refs = append(refs, ref)
		}
	}
	if recorded {
		c.refs = append(c.refs, refs...)
	}
	return nil
}

// timingsOf begins the names of the stages of measured times.
const timingsOf = "timings_"

// merge makes and puts the merged copies.
func (c *compacting) merge(ctx context.Context) error {
	used := map[schema.Ref]bool{}
	merged := 0
	for _, table := range schema.Tables() {
		refs := stages.Visible().Holding(table, c.refs)
		shards, err := listing(ctx, c.record, table, refs)
		if err != nil {
			return err
		}
		if len(shards) < 2 {
			continue
		}
		info, err := c.copy(ctx, table, shards)
		if err != nil {
			return err
		}
		c.manifest.Shards = append(c.manifest.Shards, info)
		merged += len(shards)
		for _, ref := range refs {
			used[ref] = true
		}
	}
	for _, ref := range c.refs {
		if used[ref] {
			c.manifest.Inputs = append(c.manifest.Inputs, ref)
		}
	}
	c.manifest.Stats[statShards] = float64(merged)
	return nil
}

func (c *compacting) copy(ctx context.Context, table schema.Table, shards []schema.ShardInfo) (schema.ShardInfo,
	error) {
	pieces := make([][]byte, len(shards))
	want := 0
	for i, s := range shards {
		var err error
		if pieces[i], err = c.record.ReadShard(ctx, s); err != nil {
			return schema.ShardInfo{}, err
		}
		want += s.Rows
	}
	data, rows, err := schema.Merge(table, pieces)
	if err != nil {
		return schema.ShardInfo{}, err
	}
	if rows != want {
		return schema.ShardInfo{}, fmt.Errorf("%w: the shards of table %s hold %d rows, but their manifests say %d",
			commit.ErrDamaged, table, rows, want)
	}
	return c.record.Shard(ctx, c.place, table, data, rows)
}

// listing returns the shards of a table behind manifests, in order.
func listing(ctx context.Context, w *commit.Writer, table schema.Table, refs []schema.Ref) ([]schema.ShardInfo, error) {
	manifests := make([]schema.Manifest, len(refs))
	for i, ref := range refs {
		var err error
		if manifests[i], err = w.Read(ctx, ref); err != nil {
			return nil, err
		}
	}
	return w.Shards(ctx, table, manifests...)
}

// Run compacts every finished step of a run, in order, and reports each step that it has compacted now.
func Run(ctx context.Context, w *commit.Writer, run, code string, report func(step int, r Result)) error {
	listed, err := w.Store().List(ctx, schema.HeadsPrefix(run))
	if err != nil {
		return fmt.Errorf("list heads of run %s: %w", run, err)
	}
	var steps []int
	for _, o := range listed {
		_, step, err := schema.ParseHeadKey(o.Key)
		if err != nil {
			return err
		}
		if n, ok := (schema.Place{Step: step}).StepNumber(); ok {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	for _, step := range steps {
		r, err := Step(ctx, w, run, step, code)
		if err != nil {
			return err
		}
		report(step, r)
	}
	return nil
}
