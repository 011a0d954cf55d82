package cpu

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/policy"
)

// Step implements policy.Batch.
func (b *batch[T]) Step(ctx context.Context) ([]policy.BatchEvent, error) {
	leave, err := b.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("step of a batch: %w", err)
	}
	defer leave()
	var events []policy.BatchEvent
	fresh, err := b.prefixes(&events)
	if err == nil {
		err = b.tokens(fresh)
	}
	if err != nil {
		return nil, fmt.Errorf("step of a batch: %w", err)
	}
	for _, r := range b.joined {
		events = append(events, b.event(r))
	}
	b.leave()
	return events, nil
}

// prefixes reads a piece of the prefixes. It returns the rows that can generate from now on, and adds events of those
// that end with their prefix.
func (b *batch[T]) prefixes(events *[]policy.BatchEvent) (fresh []*batchRow[T], err error) {
	pieces, err := b.pieces()
	if err != nil || len(pieces) == 0 {
		return nil, err
	}
	if err := b.read(pieces); err != nil {
		return nil, err
	}
	on := b.waiting[:0]
	for _, r := range b.waiting {
		switch {
		case r.err != nil:
			*events = append(*events, policy.BatchEvent{Row: r.id, Err: r.err})
			b.retire(r)
		case r.cached < len(r.prefix):
			on = append(on, r)
		default:
			b.usage.PrefixTokens += int64(len(r.prefix))
			b.usage.ReusedTokens += int64(r.reused)
			if r.budget == 0 {
				*events = append(*events, policy.BatchEvent{
					Row: r.id, Scores: r.scores, Finish: policy.FinishLength, Prefixed: true,
				})
				b.retire(r)
				continue
			}
			fresh = append(fresh, r)
		}
	}
	clear(b.waiting[len(on):])
	b.waiting = on
	return fresh, nil
}

// tokens generates one token of each row that has joined and of each fresh one.
func (b *batch[T]) tokens(fresh []*batchRow[T]) error {
	d := b.r.model.dims()
	n := len(b.live)
	if n+len(fresh) == 0 {
		return nil
	}
	b.s.reset(n+len(fresh), d)
	if n > 0 {
		if err := b.step(); err != nil {
			return err
		}
	}
	for i, r := range fresh {
		copy(b.s.x[(n+i)*d.H:(n+i+1)*d.H], r.state)
		r.state = nil
		b.live, b.joined = append(b.live, r.liveRow), append(b.joined, r)
	}
	return b.draw()
}

// event describes what a step brought for a row that generates.
func (b *batch[T]) event(r *batchRow[T]) policy.BatchEvent {
	e := policy.BatchEvent{Row: r.id, Finish: r.finish, Err: r.err}
	if r.err != nil {
		return e
	}
	b.usage.NewTokens++
	last := len(r.tokens) - 1
	e.Sampled, e.Token, e.LogProb, e.Entropy = true, r.tokens[last], r.logProbs[last], r.entropies[last]
	e.Top, r.likeliest = r.likeliest, nil
	if last == 0 {
		e.Prefixed, e.Reused, e.Scores, r.scores = true, r.reused, r.scores, nil
	}
	return e
}
