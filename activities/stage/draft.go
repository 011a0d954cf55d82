package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// Spec says what a stage execution is and what it reads.
type Spec struct {
	Scope  api.Scope
	Stage  string
	Turn   int // −1 if the stage has no turns
	Shard  int // −1 if the stage has no shards
	Inputs []schema.Ref
}

// Place is where the stage commits its manifest.
func (s Spec) Place() schema.Place {
	p := schema.AtInit(s.Scope.Run, s.Stage)
	if s.Scope.Step != api.InitStep {
		p = schema.At(s.Scope.Run, s.Scope.Step, s.Stage)
	}
	if s.Turn >= 0 {
		p = p.WithTurn(s.Turn)
	}
	if s.Shard >= 0 {
		p = p.WithShard(s.Shard)
	}
	return p.WithGen(s.Scope.Gen)
}

// Draft is a stage's output before its commit.
type Draft struct {
	Worker   *Worker
	Env      *Env
	Place    schema.Place
	Timing   *api.Timing
	Progress *Progress
	Recipe   *recipes.Recipe // as it applies at the stage's step
	Manifest schema.Manifest
	Stats    map[string]float64 // in addition to rows and tokens
	release  []func()           // releases engines when the stage has ended
	home     string             // this host's name, if its engine has worked
	Edited   string             // files of the user's code that were edited since the run was prepared
	Began    time.Time          // when a flow began the stage's work; zero: when the stage began
}

// Since notes that the stage's work began at a time, if nothing of it began earlier; zero: it was not begun ahead.
func (w *Draft) Since(began time.Time) {
	if !began.IsZero() && (w.Began.IsZero() || began.Before(w.Began)) {
		w.Began = began
	}
}

// Execute runs one stage: it adopts what is committed, or else works and commits. out is the activity's result.
func Execute(ctx context.Context, d *Worker, e *Env, s Spec, out api.Result,
	work func(ctx context.Context, w *Draft) error) error {
	timing := api.Timing{Stage: s.Stage, Shard: s.Shard, Turn: s.Turn}
	var began time.Time
	err := d.Track(ctx, e, s.Scope, &timing, func(ctx context.Context, p *Progress) error {
		w := &Draft{Worker: d, Env: e, Place: s.Place(), Timing: &timing, Progress: p}
		defer w.releaseAll()
		if err := w.run(ctx, s, out, work); err != nil {
			return fmt.Errorf("%s: %w", s.Stage, err)
		}
		began = w.Began
		return nil
	})
	if !began.IsZero() {
		timing.Start = began.UnixMicro() // the stage itself waited for the flow, and committed
	}
	out.Common().Timing = timing
	return err
}

func (w *Draft) run(ctx context.Context, s Spec, out api.Result, work func(ctx context.Context, w *Draft) error) error {
	found, ref, ok, err := w.Worker.Record.Lookup(ctx, w.Place)
	if err == nil && !ok && s.Stage == schema.StageEvaluate {
		found, ref, ok, err = w.Worker.Shared(ctx, w.Place)
	}
	if err != nil {
		return err
	}
	if ok {
		w.Timing.Adopted = true
		return w.adopt(found, ref, out)
	}
	if w.Manifest, err = w.Worker.Manifest(ctx, s); err != nil {
		return err
	}
	if w.Recipe, err = w.Worker.Recipes.Recipe(ctx, s.Scope); err != nil {
		return err
	}
	if err := work(ctx, w); err != nil {
		return err
	}
	result, err := ResultNote(out)
	if err != nil {
		return err
	}
	if w.Manifest.Note == nil {
		w.Manifest.Note = map[string]string{}
	}
	w.Manifest.Note[schema.NoteResult] = string(result)
	w.Manifest.Stats = map[string]float64{schema.StatRows: float64(w.Timing.Rows),
		schema.StatTokens: float64(w.Timing.Tokens)}
	maps.Copy(w.Manifest.Stats, w.Stats)
	committed, ref, adopted, err := w.Worker.Record.Commit(ctx, w.Manifest)
	if err != nil {
		return err
	}
	if adopted {
		return w.adopt(committed, ref, out)
	}
	out.Common().Manifest, out.Common().Home = ref, w.home
	w.Worker.Counts.Stored(s.Stage, bytesOf(committed))
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
func (w *Draft) adopt(m schema.Manifest, ref schema.Ref, out api.Result) error {
	if err := w.restate(m, out); err != nil {
		return err
	}
	out.Common().Manifest, out.Common().Adopted = ref, true
	return nil
}

// Copy takes over the rows, figures and result of what another run has committed. An error about its bytes wraps
// commit.ErrDamaged; the draft is then as before.
func (w *Draft) Copy(ctx context.Context, m schema.Manifest, out api.Result) error {
	copied := Draft{Worker: w.Worker, Place: w.Place}
	for _, s := range m.Shards {
		data, err := w.Worker.Record.ReadShard(ctx, s)
		if err != nil {
			return err
		}
		if err := copied.Shard(ctx, s.Table, data, s.Rows); err != nil {
			return err
		}
	}
	if err := w.restate(m, out); err != nil {
		return err
	}
	w.Manifest.Shards, w.Stats, w.Timing.Adopted = copied.Manifest.Shards, m.Stats, true
	return nil
}

// restate sets out to the result that a manifest holds, and counts its rows and tokens.
func (w *Draft) restate(m schema.Manifest, out api.Result) error {
	if text, ok := m.Note[schema.NoteResult]; ok {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			return fmt.Errorf("%w: result in %s: %w", commit.ErrDamaged, m.ManifestKey(), err)
		}
	}
	w.Timing.Rows, w.Timing.Tokens = int64(m.Stats[schema.StatRows]), int64(m.Stats[schema.StatTokens])
	return nil
}

// ResultNote encodes an activity's result for the manifest's note, with the fields in the order of their names. The
// part that belongs to the attempt is left out.
func ResultNote(out api.Result) ([]byte, error) {
	attempt := *out.Common()
	*out.Common() = api.Done{}
	data, err := json.Marshal(out)
	*out.Common() = attempt
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return json.Marshal(fields)
}

// Put stores rows, in canonical order, as one shard of the draft. The shards of a table must be put in order.
func Put[R schema.Row](ctx context.Context, w *Draft, rows []R) error {
	schema.Sort(rows)
	info, err := commit.PutRows(ctx, w.Worker.Record, w.Place, rows)
	if err != nil {
		return err
	}
	w.Manifest.Shards = append(w.Manifest.Shards, info)
	return nil
}

// Shard stores the encoded rows of a table as one shard of the draft.
func (w *Draft) Shard(ctx context.Context, table schema.Table, data []byte, rows int) error {
	info, err := w.Worker.Record.Shard(ctx, w.Place, table, data, rows)
	if err != nil {
		return err
	}
	w.Manifest.Shards = append(w.Manifest.Shards, info)
	return nil
}

// Manifest starts the manifest of a stage: this code makes it from the inputs, under the run's recipe.
func (d *Worker) Manifest(ctx context.Context, s Spec) (schema.Manifest, error) {
	c, err := d.Recipes.Config(ctx, s.Scope.Config)
	if err != nil {
		return schema.Manifest{}, err
	}
	m := schema.NewManifest(s.Place(), d.Code, c.Digest)
	m.Inputs = append([]schema.Ref{s.Scope.Config}, s.Inputs...)
	return m, nil
}
