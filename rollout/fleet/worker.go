package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// worker is an engine's queue and its batch.
type worker struct {
	id       int
	sampler  policy.Sampler
	queue    []row
	batch    *batch // nil while the engine does nothing
	lost     bool
	perToken float64 // reported last
}

// row is an attempt at a turn.
type row struct {
	episode, attempt int
	turn             Turn
}

// batch is the turns of one call.
type batch struct {
	worker *worker
	rows   []row
	cancel context.CancelFunc
	begun  time.Time
	took   time.Duration
	out    policy.Generated
	err    error
}

// trim drops rows that were given up. A batch of which none is left is cancelled, so that the engine is free.
func (f *fleet) trim(w *worker) {
	w.queue = slices.DeleteFunc(w.queue, func(r row) bool { return !f.current(r) })
	if w.batch != nil && !slices.ContainsFunc(w.batch.rows, f.current) {
		w.batch.cancel()
	}
}

// launch starts a batch of everything that is queued, if the engine does nothing.
func (f *fleet) launch(w *worker) {
	if w.batch != nil || w.lost || len(w.queue) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	b := &batch{worker: w, rows: w.queue, cancel: cancel, begun: time.Now()}
	w.queue, w.batch = nil, b
	f.running++
	go func() {
		b.out, b.err = generate(ctx, w.sampler, f.options.Request, b.rows)
		b.took = time.Since(b.begun)
		f.messages <- message{batch: b}
	}()
}

// generate generates rows. If that fails for another reason than the engine's, each half is tried for itself, so that
// the error names the row at fault.
func generate(ctx context.Context, s policy.Sampler, request policy.GenerateRequest, rows []row) (policy.Generated,
	error) {
	request.Prefixes, request.Streams, request.MaxTokens = nil, nil, nil
	for _, r := range rows {
		request.Prefixes = append(request.Prefixes, r.turn.Prefix)
		request.Streams = append(request.Streams, r.turn.Stream)
		request.MaxTokens = append(request.MaxTokens, r.turn.MaxTokens)
	}
	out, err := s.Generate(ctx, request)
	switch {
	case err == nil && len(out.Tokens) != len(rows):
		return out, fmt.Errorf("a sampler answered %d of %d rows", len(out.Tokens), len(rows))
	case err == nil || gone(err) || ctx.Err() != nil:
		return out, err
	case len(rows) == 1:
		return out, fmt.Errorf("episode %d: %w", rows[0].episode, err)
	}
	out, err = generate(ctx, s, request, rows[:len(rows)/2])
	if err != nil {
		return out, err
	}
	rest, err := generate(ctx, s, request, rows[len(rows)/2:])
	out.Tokens, out.LogProbs = append(out.Tokens, rest.Tokens...), append(out.LogProbs, rest.LogProbs...)
	out.Entropies, out.Finish = append(out.Entropies, rest.Entropies...), append(out.Finish, rest.Finish...)
	return out, err
}

// gone reports whether an error means that the whole engine has failed.
func gone(err error) bool {
	var device *policy.DeviceError
	return errors.Is(err, policy.ErrLost) || errors.Is(err, policy.ErrOutOfMemory) || errors.As(err, &device)
}

// hear handles a message.
func (f *fleet) hear(m message) error {
	f.running--
	if m.batch != nil {
		return f.settle(m.batch)
	}
	if m.err != nil {
		return fmt.Errorf("tool calls of episode %d: %w", m.episode, m.err)
	}
	held := len(f.work[m.episode].Next().Prefix)
	f.tell(scheduler.Event{Kind: scheduler.Returned, Episode: m.episode, Attempt: m.attempt, Held: held, Cached: held})
	return nil
}

// settle absorbs the responses of a batch.
func (f *fleet) settle(b *batch) error {
	b.cancel()
	w := b.worker
	w.batch = nil
	switch {
	case b.err == nil:
	case gone(b.err):
		w.lost, w.queue = true, nil
		f.report.Lost = append(f.report.Lost, w.id)
		f.tell(scheduler.Event{Kind: scheduler.Lost, Engine: w.id})
		return nil
	case slices.ContainsFunc(b.rows, f.current):
		return fmt.Errorf("engine %d: %w", w.id, b.err)
	default: // given up
		return nil
	}
	steps := 0
	for i, r := range b.rows {
		steps = max(steps, len(b.out.Tokens[i]))
		if !f.current(r) {
			continue
		}
		if err := f.absorb(w, r, b.response(i)); err != nil {
			return fmt.Errorf("episode %d: %w", r.episode, err)
		}
	}
	if steps > 0 {
		f.rate(w, b.took.Seconds()/float64(steps))
	}
	return nil
}

func (b *batch) response(i int) Response {
	r := Response{Tokens: b.out.Tokens[i], LogProbs: b.out.LogProbs[i], Finish: b.out.Finish[i]}
	if b.out.Entropies != nil {
		r.Entropies = b.out.Entropies[i]
	}
	return r
}

// absorb gives a response to its episode, and runs its tool calls.
func (f *fleet) absorb(w *worker, r row, response Response) error {
	f.attempts[r.episode] = 0
	f.report.Turns[w.id]++
	e := f.work[r.episode]
	more, err := e.Absorb(response)
	if err != nil {
		return err
	}
	event := scheduler.Event{Kind: scheduler.Ended, Episode: r.episode, Attempt: r.attempt,
		Tokens: len(response.Tokens), Held: len(r.turn.Prefix) + len(response.Tokens)}
	if more {
		event.Kind = scheduler.TurnEnded
		f.running++
		go func() {
			f.messages <- message{episode: r.episode, attempt: r.attempt, err: e.Call(f.ctx)}
		}()
	}
	f.tell(event)
	return nil
}

// look reports engines that are slower than was known: a batch that has not ended has made at most as many steps as its
// rows may have tokens.
func (f *fleet) look() {
	for _, w := range f.workers {
		if w.batch == nil {
			continue
		}
		most := 1
		for _, r := range w.batch.rows {
			most = max(most, r.turn.MaxTokens)
		}
		if least := time.Since(w.batch.begun).Seconds() / float64(most); least > w.perToken {
			f.rate(w, least)
		}
	}
}

func (f *fleet) rate(w *worker, perToken float64) {
	w.perToken = perToken
	f.tell(scheduler.Event{Kind: scheduler.Rate, Engine: w.id, PerToken: perToken})
}
