package tool

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Journal keeps small notes about calls in a durable place that all workers share. Safe for concurrent use.
type Journal interface {
	// PutIfAbsent stores a note unless there is one with that name. Of all callers that put different notes, exactly
	// one gets won. An error says nothing about whether the note was stored.
	PutIfAbsent(ctx context.Context, k Key, name string, note []byte) (won bool, err error)
	// Get returns a note; ok is false if there is none with that name.
	Get(ctx context.Context, k Key, name string) (note []byte, ok bool, err error)
}

// ErrNotRun means that a call broke and has certainly had no effect, for example because its server could not be
// reached. A tool of AtMostOnce wraps it, so that another attempt may make the call.
var ErrNotRun = errors.New("the call was not run")

// Once returns the tool with a journal that keeps its calls from running twice. It returns other tools than those of
// AtMostOnce unchanged.
//
// Before a call runs, a note says that it has begun. After it has run, another note holds its result, so that the next
// attempt takes the result from there. If the call was not run (ErrNotRun), the other note says so, and the next
// attempt begins it again. A call that was begun and has no other note is not run: it breaks with ErrUnknownOutcome.
// That also holds for a call that is running elsewhere, in a worker that others believe dead.
//
// The tool breaks call by call, because running a batch again would find calls without an outcome. Only if no call of
// a batch got a verdict, and one of them was not run, the whole tool is broken.
func Once(t Tool, j Journal) Tool {
	if t.Spec().Repeat != AtMostOnce {
		return t
	}
	return once{t, j}
}

type once struct {
	Tool
	journal Journal
}

// note is what a journal holds.
type note struct {
	Call string `json:"call"` // Call.Digest
	// Attempt differs in every note that a call is begun with. A store may take a note for its own that another worker
	// has put with the same bytes.
	Attempt string  `json:"attempt,omitempty"`
	Result  *Result `json:"result,omitempty"` // exactly one of Result and NotRun, if the call has ended
	NotRun  bool    `json:"not_run,omitempty"`
}

// Run runs the calls of each episode in their order, several episodes at once.
func (o once) Run(ctx context.Context, calls []Call) ([]Result, error) {
	episodes := byEpisode(calls)
	results, broken := make([]Result, len(calls)), make(CallErrors, len(calls))
	whole := make([]error, len(episodes))
	atOnce(len(episodes), func(e int) {
		var before []Ran
		for _, i := range episodes[e] {
			c := calls[i]
			if o.Spec().Stateful { // the tool sees each call alone, and this one runs after those
				c.Past = slices.Concat(c.Past, before)
			}
			results[i], broken[i] = o.one(ctx, c)
			if broken[i] == nil {
				before = append(before, Ran{Call: withoutPast(calls[i]), Result: results[i].Untimed()})
			}
			if errors.As(broken[i], new(journalBroke)) {
				whole[e] = broken[i]
				return
			}
		}
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := errors.Join(whole...); err != nil {
		return nil, err
	}
	if slices.Index(broken, nil) < 0 && errors.Is(broken, ErrNotRun) {
		return nil, fmt.Errorf("none of %d calls got a verdict: %w", len(calls), errors.Join(broken...))
	}
	return results, broken.OrNil()
}

// End releases what the tool holds for an episode.
func (o once) End(ctx context.Context, episode string) error {
	if e, ok := o.Tool.(Ender); ok {
		return e.End(ctx, episode)
	}
	return nil
}

// journalBroke is an error of the journal, for which no call is to blame.
type journalBroke struct{ error }

// Unwrap returns the journal's error.
func (b journalBroke) Unwrap() error { return b.error }

// one runs a call, unless an earlier attempt has begun it and may have run it.
func (o once) one(ctx context.Context, c Call) (Result, error) {
	for attempt := 0; ; attempt++ {
		if err := context.Cause(ctx); err != nil {
			return Result{}, err
		}
		begun := note{Call: c.Digest(), Attempt: rand.Text()}
		first, err := o.put(ctx, c.Key, fmt.Sprintf("begun-%d", attempt), begun)
		if err != nil {
			return Result{}, err
		}
		ended := fmt.Sprintf("ended-%d", attempt)
		if first {
			return o.run(ctx, c, ended)
		}
		earlier, err := o.earlier(ctx, c, ended)
		if err != nil {
			return Result{}, err
		}
		if !earlier.NotRun {
			return *earlier.Result, nil
		}
	}
}

// run runs a call that this attempt has begun, and notes how it ended.
func (o once) run(ctx context.Context, c Call, ended string) (Result, error) {
	out, err := outcomesOf(ctx, o.Tool, []Call{c})
	if err == nil {
		err = out[0].Broken
	}
	n := note{Call: c.Digest()}
	switch {
	case errors.Is(err, ErrNotRun):
		n.NotRun = true
	case err != nil:
		return Result{}, err
	default:
		n.Result = new(out[0].Untimed())
	}
	if _, err := o.put(ctx, c.Key, ended, n); err != nil {
		return Result{}, err
	}
	if err != nil {
		return Result{}, err
	}
	return out[0].Result, nil
}

// earlier returns how an earlier attempt ended the call.
func (o once) earlier(ctx context.Context, c Call, ended string) (note, error) {
	var n note
	data, ok, err := o.journal.Get(ctx, c.Key, ended)
	if err != nil {
		return n, journalBroke{fmt.Errorf("look up how call %s ended: %w", c.Key, err)}
	}
	if !ok {
		return n, ErrUnknownOutcome
	}
	if err := json.Unmarshal(data, &n); err != nil || n.NotRun == (n.Result != nil) {
		return n, journalBroke{fmt.Errorf("the note on how call %s ended is damaged: %q", c.Key, data)}
	}
	if n.Call != c.Digest() {
		return n, fmt.Errorf("%w: an earlier attempt made another call in its place", ErrUnknownOutcome)
	}
	return n, nil
}

func (o once) put(ctx context.Context, k Key, name string, n note) (won bool, err error) {
	data, err := json.Marshal(n)
	if err != nil {
		return false, fmt.Errorf("encode a note: %w", err)
	}
	if won, err = o.journal.PutIfAbsent(ctx, k, name, data); err != nil {
		return false, journalBroke{fmt.Errorf("note %s of call %s: %w", name, k, err)}
	}
	return won, nil
}
