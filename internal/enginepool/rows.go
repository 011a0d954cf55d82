package enginepool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
)

// rowsAtOnce bounds the rows that generate together in a stream.
const rowsAtOnce = 256

// joining is how long rows may join a stream while others wait for its engine.
const joining = 250 * time.Millisecond

// Rows generates rows that come and go, each for a caller of its own: a row begins as soon as there is room, next to
// those of other callers, and none waits for another's end.
type Rows struct {
	s      *Sampler
	closed sync.Once
}

// Rows returns what generates rows of at most the given length, prefixes included. The caller closes it. It is nil if
// the sampler's numbers depend on the rows that generate together: those must be chosen by the caller then. Inference
// servers choose theirs themselves.
func (s *Sampler) Rows(longest int) *Rows {
	if s.stream == nil && s.shared == nil || s.shared == nil && !s.sampler.Capabilities().BatchInvariant {
		return nil
	}
	if s.stream != nil {
		s.stream.enter(longest)
	}
	return &Rows{s: s}
}

// Generate generates one row with a version of the policy published. Its result has one row.
func (r *Rows) Generate(ctx context.Context, v Version, row policy.BatchRow) (out policy.Generated, err error) {
	if r.s.shared == nil {
		return r.s.stream.traced(ctx, v, row)
	}
	err = r.s.Use(ctx, v, func(s policy.Sampler) (err error) {
		out, err = s.Generate(ctx, joinRows([]*asked{{row: row}}))
		return err
	})
	return out, err
}

// traced is generate as a span of the caller's: rows of many callers share the engine, so that no span is about its use
// as a whole.
func (t *stream) traced(ctx context.Context, v Version, row policy.BatchRow) (policy.Generated, error) {
	a := &asked{ctx: ctx, v: v, row: row, done: make(chan struct{})}
	_, span := trace.Start(ctx, sampleSpan)
	if span == nil {
		return t.generate(ctx, a)
	}
	asked := time.Now()
	out, err := t.generate(ctx, a)
	switch {
	case ctx.Err() != nil:
		span.End("cancelled")
	case err != nil:
		span.End("failed")
	default:
		span.End("", slog.String("device", t.s.Describe().Device), slog.Int("tokens", len(out.Tokens[0])),
			slog.Float64("queue_seconds", a.joined.Sub(asked).Seconds()))
	}
	return out, err
}

// Sampler returns the sampler, for questions about it. It does not generate here.
func (r *Rows) Sampler() policy.Sampler { return r.s.sampler }

// Close ends the use. Rows that still generate end with their contexts.
func (r *Rows) Close() {
	r.closed.Do(func() {
		if r.s.stream != nil {
			r.s.stream.leave()
		}
	})
}

// stream shares an engine among rows. One goroutine, the driver, generates as long as there are rows; it takes turns
// with the engine's other users. Rows of another version wait until those before them have ended.
type stream struct {
	s *Sampler

	mu      sync.Mutex
	waiting []*asked // in the order in which they were asked
	driven  bool     // whether there is a driver
	users   int
	longest int // of the users' rows

	// batch is open from a version's first row until another version's, or until the last user leaves. The driver has
	// it; without one, the holder of mu.
	batch  policy.Batch
	opened string // the version's name
	room   int    // longest, when the batch was opened
}

// asked is a row that a caller waits for.
type asked struct {
	ctx  context.Context
	v    Version
	row  policy.BatchRow
	out  policy.Generated // of one row, as it grows
	err  error
	done chan struct{}

	joined time.Time // when it began to be generated
}

func (t *stream) enter(longest int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users++
	t.longest = max(t.longest, longest)
}

func (t *stream) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		t.longest = 0
		if !t.driven {
			t.shut()
		}
	}
}

// shut closes the batch.
func (t *stream) shut() {
	if t.batch != nil {
		_ = t.batch.Close() // it frees memory and cannot fail
		t.batch = nil
	}
}

func (t *stream) generate(ctx context.Context, a *asked) (policy.Generated, error) {
	t.mu.Lock()
	t.waiting = append(t.waiting, a)
	if !t.driven {
		t.driven = true
		go t.drive()
	}
	t.mu.Unlock()
	select {
	case <-a.done:
		return a.out, a.err
	case <-ctx.Done(): // the driver takes the row out
		return policy.Generated{}, ctx.Err()
	}
}

// drive generates until no row is left.
func (t *stream) drive() {
	for {
		first := t.next()
		if first == nil {
			return
		}
		// A use of the engine is no single caller's: their contexts end and trace their own rows alone.
		ctx := context.Background()
		err := rescue.Do(func() error {
			return t.s.Use(ctx, first.v, func(s policy.Sampler) error {
				if b, ok := s.(policy.Batcher); ok {
					return t.session(ctx, b, first.v)
				}
				t.round(ctx, s, first)
				return nil
			})
		})
		if err != nil {
			t.shut()
			t.fail(first.v, err)
		}
	}
}

// next returns the row that has waited longest. If there is none, the driver ends.
func (t *stream) next() *asked {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(a *asked) bool { return a.ctx.Err() != nil })
	if len(t.waiting) > 0 {
		return t.waiting[0]
	}
	if t.driven = false; t.users == 0 {
		t.shut()
	}
	return nil
}

// fail ends the waiting rows of a version.
func (t *stream) fail(v Version, err error) {
	for _, a := range t.take(math.MaxInt, func(a *asked) bool { return a.v == v }) {
		a.end(err)
	}
}

// take removes and returns the first waiting rows that suit, at most n.
func (t *stream) take(n int, suits func(*asked) bool) (out []*asked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(a *asked) bool {
		if len(out) == n || !suits(a) {
			return false
		}
		out = append(out, a)
		return true
	})
	return out
}

func (t *stream) back(a *asked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.Insert(t.waiting, 0, a)
}

func (a *asked) end(err error) {
	if err != nil {
		a.out, a.err = policy.Generated{}, err
	}
	close(a.done)
}

// session generates the rows of a version, and those that join them, until none is left. If it fails, or panics, so do
// the rows that are being generated.
func (t *stream) session(ctx context.Context, engine policy.Batcher, v Version) error {
	live := map[int64]*asked{}
	err := rescue.Do(func() error { return t.generateAll(ctx, engine, v, live) })
	for _, a := range live {
		a.end(err)
	}
	return err
}

// generateAll is session's work. If others wait for the engine, no more rows join after a while.
func (t *stream) generateAll(ctx context.Context, engine policy.Batcher, v Version, live map[int64]*asked) error {
	if err := t.open(ctx, engine, v); err != nil {
		return err
	}
	reopened := false
	for began := time.Now(); ; {
		if t.s.wanted.Load() == 0 || time.Since(began) < joining {
			err := t.admit(ctx, v, live)
			if errors.Is(err, policy.ErrWrongVersion) && len(live) == 0 && !reopened {
				// The same version was loaded again, after another one, since the batch was opened.
				t.shut()
				if reopened, err = true, t.open(ctx, engine, v); err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
		}
		for id, a := range live {
			if a.ctx.Err() == nil {
				continue
			}
			delete(live, id)
			if err := t.batch.Remove(ctx, id); err != nil {
				return err
			}
		}
		if len(live) == 0 {
			return nil
		}
		events, err := t.batch.Step(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			if a := live[e.Row]; a != nil && a.add(e) {
				delete(live, e.Row)
			}
		}
	}
}

// open makes the batch one of a version.
func (t *stream) open(ctx context.Context, engine policy.Batcher, v Version) (err error) {
	t.mu.Lock()
	longest := t.longest
	t.mu.Unlock()
	if t.batch != nil && t.opened == v.name() && t.room >= longest {
		return nil
	}
	t.shut()
	t.batch, err = engine.Batch(ctx, policy.RolePolicy, policy.BatchOptions{Rows: rowsAtOnce, Longest: longest})
	t.opened, t.room = v.name(), longest
	return err
}

// admit lets waiting rows of a version join, as many as there is room for.
func (t *stream) admit(ctx context.Context, v Version, live map[int64]*asked) error {
	for {
		next := t.take(1, func(a *asked) bool { return a.v == v })
		if len(next) == 0 {
			return nil
		}
		a := next[0]
		if a.ctx.Err() != nil {
			continue
		}
		id, err := t.batch.Add(ctx, a.row)
		switch {
		case errors.Is(err, policy.ErrFull) && len(live) > 0:
			t.back(a)
			return nil
		case errors.Is(err, policy.ErrWrongVersion), errors.Is(err, policy.ErrLost):
			t.back(a) // it ends with the others
			return err
		case err != nil:
			a.end(err)
		default:
			a.joined = time.Now()
			live[id] = a
		}
	}
}

// add takes what a step has brought. It reports whether the row has ended.
func (a *asked) add(e policy.BatchEvent) bool {
	if a.out.Tokens == nil {
		a.out = policy.Generated{Tokens: [][]int32{{}}, LogProbs: [][]float32{{}}, Entropies: [][]float32{{}},
			Finish: []policy.Finish{""}}
	}
	if e.Sampled {
		if len(a.out.Tokens[0]) < a.row.TopTokens {
			a.likeliest(e.Top)
		}
		a.out.Tokens[0] = append(a.out.Tokens[0], e.Token)
		a.out.LogProbs[0] = append(a.out.LogProbs[0], e.LogProb)
		a.out.Entropies[0] = append(a.out.Entropies[0], e.Entropy)
	}
	switch {
	case e.Err != nil:
		a.end(e.Err)
	case e.Finish != "":
		a.out.Finish[0] = e.Finish
		a.end(nil)
	default:
		return false
	}
	return true
}

// likeliest keeps the log-probabilities of the likeliest tokens at a position.
func (a *asked) likeliest(top []policy.TokenLogProb) {
	if a.out.Top == nil {
		a.out.Top = [][][]float32{nil}
	}
	logProbs := make([]float32, len(top))
	for i, t := range top {
		logProbs[i] = t.LogProb
	}
	a.out.Top[0] = append(a.out.Top[0], logProbs)
}

// round generates the rows that wait now, and can be in one request, of an engine whose rows do not come and go.
func (t *stream) round(ctx context.Context, s policy.Sampler, first *asked) {
	rows := t.take(rowsAtOnce, func(a *asked) bool {
		return a.v == first.v && a.row.Temperature == first.row.Temperature &&
			a.row.Truncation == first.row.Truncation && slices.Equal(a.row.Stop, first.row.Stop) &&
			a.row.Top == first.row.Top && a.row.TopTokens == first.row.TopTokens
	})
	began := time.Now()
	for _, a := range rows {
		a.joined = began
	}
	var out policy.Generated
	err := rescue.Do(func() (err error) {
		out, err = s.Generate(ctx, joinRows(rows))
		return err
	})
	if err == nil && (len(out.Tokens) != len(rows) || len(out.Finish) != len(rows)) {
		err = fmt.Errorf("%d responses with %d ends to %d rows", len(out.Tokens), len(out.Finish), len(rows))
	}
	for i, a := range rows {
		if err == nil {
			a.out = policy.Generated{Tokens: out.Tokens[i : i+1], Finish: out.Finish[i : i+1]}
			if len(out.LogProbs) == len(rows) {
				a.out.LogProbs = out.LogProbs[i : i+1]
			}
			if len(out.Entropies) == len(rows) {
				a.out.Entropies = out.Entropies[i : i+1]
			}
			if len(out.Top) == len(rows) {
				a.out.Top = out.Top[i : i+1]
			}
		}
		a.end(err)
	}
}

// joinRows returns the request for rows that differ in their prefixes, streams and budgets alone.
func joinRows(rows []*asked) policy.GenerateRequest {
	req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: rows[0].row.Temperature,
		Truncation: rows[0].row.Truncation, Stop: rows[0].row.Stop, Top: rows[0].row.Top,
		TopTokens: rows[0].row.TopTokens}
	for _, a := range rows {
		req.Prefixes = append(req.Prefixes, a.row.Prefix)
		req.Streams = append(req.Streams, a.row.Stream)
		req.MaxTokens = append(req.MaxTokens, a.row.MaxTokens)
	}
	return req
}
