package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// spec says what a stage execution is and what it reads.
type spec struct {
	scope  api.Scope
	stage  string
	turn   int // −1 if the stage has no turns
	shard  int // −1 if the stage has no shards
	inputs []schema.Ref
}

func (s spec) place() schema.Place {
	p := schema.AtInit(s.scope.Run, s.stage)
	if s.scope.Step != api.InitStep {
		p = schema.At(s.scope.Run, s.scope.Step, s.stage)
	}
	if s.turn >= 0 {
		p = p.WithTurn(s.turn)
	}
	if s.shard >= 0 {
		p = p.WithShard(s.shard)
	}
	return p.WithGen(s.scope.Gen)
}

// draft is a stage's output before its commit.
type draft struct {
	deps     *Deps
	env      *Env
	place    schema.Place
	timing   *api.Timing
	progress *progress
	manifest schema.Manifest
	stats    map[string]float64 // in addition to rows and tokens
	release  []func()           // releases engines when the stage has ended
	home     string             // this host's name, if its engine has worked
	edited   string             // files of the user's code that were edited since the run was prepared
	began    time.Time          // when a flow began the stage's work; zero: when the stage began
}

// since notes that the stage's work began at a time, if nothing of it began earlier; zero: it was not begun ahead.
func (w *draft) since(began time.Time) {
	if !began.IsZero() && (w.began.IsZero() || began.Before(w.began)) {
		w.began = began
	}
}

// execute runs one stage: it adopts what is committed, or else works and commits. out is the activity's result, and
// done is the part of it that all stages have in common.
func execute[R any](ctx context.Context, d *Deps, e *Env, s spec, out *R, done *api.Done,
	work func(ctx context.Context, w *draft) error) error {
	timing := api.Timing{Stage: s.stage, Shard: s.shard, Turn: s.turn}
	var began time.Time
	err := d.tracked(ctx, e, s.scope, &timing, func(ctx context.Context, p *progress) error {
		w := &draft{deps: d, env: e, place: s.place(), timing: &timing, progress: p}
		defer w.releaseAll()
		if err := w.run(ctx, s, out, done, work); err != nil {
			return fmt.Errorf("%s: %w", s.stage, err)
		}
		began = w.began
		return nil
	})
	if !began.IsZero() {
		timing.Start = began.UnixMicro() // the stage itself waited for the flow, and committed
	}
	done.Timing = timing
	return err
}

func (w *draft) run(ctx context.Context, s spec, out any, done *api.Done,
	work func(ctx context.Context, w *draft) error) error {
	if found, ref, ok, err := w.deps.Record.Lookup(ctx, w.place); err != nil {
		return err
	} else if ok {
		w.timing.Adopted = true
		return w.adopt(found, ref, out, done)
	}
	var err error
	if w.manifest, err = w.deps.manifest(ctx, s); err != nil {
		return err
	}
	if err := work(ctx, w); err != nil {
		return err
	}
	result, err := resultNote(out, done)
	if err != nil {
		return err
	}
	if w.manifest.Note == nil {
		w.manifest.Note = map[string]string{}
	}
	w.manifest.Note[schema.NoteResult] = string(result)
	w.manifest.Stats = map[string]float64{schema.StatRows: float64(w.timing.Rows),
		schema.StatTokens: float64(w.timing.Tokens)}
	maps.Copy(w.manifest.Stats, w.stats)
	committed, ref, adopted, err := w.deps.Record.Commit(ctx, w.manifest)
	if err != nil {
		return err
	}
	if adopted {
		return w.adopt(committed, ref, out, done)
	}
	done.Manifest, done.Home = ref, w.home
	w.deps.Counts.Stored(s.stage, bytesOf(committed))
	return nil
}

// bytesOf counts the bytes of a manifest's shards and of the files of its checkpoints that it has stored itself.
func bytesOf(m schema.Manifest) (total int64) {
	for _, s := range m.Shards {
		total += s.Bytes
	}
	for _, c := range []*schema.Checkpoint{m.Checkpoint, m.Critic} {
		if c == nil {
			continue
		}
		for _, f := range c.Files {
			if f.At == "" {
				total += f.Bytes
			}
		}
	}
	return total
}

// adopt returns what another attempt has committed as if this attempt had done it.
func (w *draft) adopt(m schema.Manifest, ref schema.Ref, out any, done *api.Done) error {
	if text, ok := m.Note[schema.NoteResult]; ok {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			return fmt.Errorf("%w: result in %s: %w", commit.ErrDamaged, ref.Key, err)
		}
	}
	w.timing.Rows, w.timing.Tokens = int64(m.Stats[schema.StatRows]), int64(m.Stats[schema.StatTokens])
	done.Manifest, done.Adopted = ref, true
	return nil
}

// resultNote encodes an activity's result for the manifest's note, with the fields in the order of their names. done is
// the part of the result that belongs to the attempt and is left out.
func resultNote(out any, done *api.Done) ([]byte, error) {
	attempt := *done
	*done = api.Done{}
	data, err := json.Marshal(out)
	*done = attempt
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return json.Marshal(fields)
}

// put stores rows, in canonical order, as one shard of the draft. The shards of a table must be put in order.
func put[R schema.Row](ctx context.Context, w *draft, rows []R) error {
	schema.Sort(rows)
	info, err := commit.PutRows(ctx, w.deps.Record, w.place, rows)
	if err != nil {
		return err
	}
	w.manifest.Shards = append(w.manifest.Shards, info)
	return nil
}

func (w *draft) shard(ctx context.Context, table schema.Table, data []byte, rows int) error {
	info, err := w.deps.Record.Shard(ctx, w.place, table, data, rows)
	if err != nil {
		return err
	}
	w.manifest.Shards = append(w.manifest.Shards, info)
	return nil
}

// manifest starts the manifest of a stage: this code makes it from the inputs, under the run's recipe.
func (d *Deps) manifest(ctx context.Context, s spec) (schema.Manifest, error) {
	c, err := d.Recipes.config(ctx, s.scope.Config)
	if err != nil {
		return schema.Manifest{}, err
	}
	m := schema.NewManifest(s.place(), d.Code, c.digest)
	m.Inputs = append([]schema.Ref{s.scope.Config}, s.inputs...)
	return m, nil
}
