package cpu

import (
	"context"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/policy"
)

// usualRows and batchBytes are the bounds of a batch that its caller does not give. keptBytes bounds the memory that a
// closed batch leaves to the next one: more is worth more to the updates in between.
const (
	usualRows  = 64
	batchBytes = 1 << 30
	keptBytes  = 256 << 20
)

// batch implements policy.Batch: rows of different requests generate together. A row's prefix is read in pieces
// (prefill_batch.go), so that a long prefix does not hold up the rows that already generate. What a row leaves in the
// caches is kept for later rows with the same beginning (kept.go).
//
//	Add ──▶ waiting ── whole prefix is read ──▶ live ── stop token, budget, Remove ──▶ kept prefix
type batch[T float] struct {
	e *engine[T]
	*decoding[T]
	role    policy.Role
	steps   int64 // of the optimiser, when the batch was opened
	most    int   // rows
	pool    pool
	waiting []*batchRow[T]
	joined  []*batchRow[T] // those in live, in the same order
	kept    []*keptPrefix
	clock   int64 // counts uses of kept prefixes
	next    int64 // number of the next row
	usage   policy.BatchUsage
	closed  bool
}

// batchRow is a row with what is only known of rows of batches.
type batchRow[T float] struct {
	*liveRow
	id     int64
	prefix []int32
	score  bool
	scores []policy.BatchScore // of the prefix's tokens from the second on
	begun  bool                // whether its prefix is being read
	reused int
	state  []T // H, after the prefix; until the row joins the live ones
}

// Batch implements policy.Batcher.
func (e *engine[T]) Batch(ctx context.Context, role policy.Role, o policy.BatchOptions) (policy.Batch, error) {
	r, leave, err := e.enter(ctx, role)
	if err != nil {
		return nil, fmt.Errorf("open a batch: %w", err)
	}
	defer leave()
	if r.model.shape.ValueHead {
		return nil, fmt.Errorf("open a batch: %w", bad("a critic does not generate"))
	}
	if o.Rows < 0 || o.Tokens < 0 || o.Longest < 0 {
		return nil, fmt.Errorf("open a batch: %w", bad("%d rows, %d tokens, %d in one row", o.Rows, o.Tokens,
			o.Longest))
	}
	if o.Rows == 0 {
		o.Rows = usualRows
	}
	if o.Tokens == 0 {
		longest := r.model.shape.Positions
		useful := 2 * o.Rows * longest // twice what all rows can use leaves as much for prefixes that are kept
		if o.Longest > 0 {
			longest = min(longest, roundUp(o.Longest))
			useful = o.Rows * longest
		}
		o.Tokens = min(max(batchBytes/(r.tokenFloats()*4), longest), useful)
	}
	d, err := newDecoding(r, min(r.model.shape.Positions, roundUp(o.Tokens)))
	if err != nil {
		return nil, fmt.Errorf("open a batch: %w", err)
	}
	b := &batch[T]{e: e, decoding: d, role: role, steps: r.trained.step, most: o.Rows, pool: newPool(roundUp(o.Tokens))}
	b.memory, e.caches = e.caches, nil
	b.caches = newCaches(&b.memory, r.model.shape.Layers, b.pool.size, r.model.dims(), r.workers[0].mm)
	return b, nil
}

// lock takes the engine for one call, unless the batch's model is no longer the one that the role has.
func (b *batch[T]) lock(ctx context.Context) (leave func(), err error) {
	r, leave, err := b.e.enter(ctx, b.role)
	switch {
	case err != nil:
		return nil, err
	case b.closed:
		err = fmt.Errorf("%w: the batch is closed", policy.ErrLost)
	case r != b.r || r.trained.step != b.steps:
		err = fmt.Errorf("%w: the weights have changed since the batch was opened", policy.ErrWrongVersion)
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

func (b *batch[T]) Add(ctx context.Context, row policy.BatchRow) (int64, error) {
	leave, err := b.lock(ctx)
	if err != nil {
		return 0, fmt.Errorf("add a row: %w", err)
	}
	defer leave()
	if err := b.check(row); err != nil {
		return 0, fmt.Errorf("add a row: %w", err)
	}
	if len(b.waiting)+len(b.joined) >= b.most {
		return 0, fmt.Errorf("add a row: %w", policy.ErrFull)
	}
	if !row.Score {
		b.touch(row.Prefix)
	}
	at, ok := b.room(len(row.Prefix) + row.MaxTokens)
	if !ok {
		return 0, fmt.Errorf("add a row: %w", policy.ErrFull)
	}
	b.next++
	b.waiting = append(b.waiting, &batchRow[T]{id: b.next, prefix: row.Prefix, score: row.Score, liveRow: &liveRow{
		at: at, rng: rowRandom(row.Stream), budget: row.MaxTokens, top: row.Top, keep: row.TopTokens,
		sampling: &sampling{
			temperature: row.Temperature, truncation: row.Truncation, stop: row.Stop,
		},
	}})
	return b.next, nil
}

// check refuses a row that could never be served.
func (b *batch[T]) check(row policy.BatchRow) error {
	s := b.r.model.shape
	if err := checkTokens(s, "prefix of row", int(b.next), row.Prefix); err != nil {
		return err
	}
	all := len(row.Prefix) + row.MaxTokens
	switch {
	case row.MaxTokens < 0 || row.MaxTokens == 0 && !row.Score:
		return bad("budget of %d tokens", row.MaxTokens)
	case row.Top < 0 || row.TopTokens < 0:
		return bad("%d likeliest tokens at %d first tokens", row.Top, row.TopTokens)
	case all > s.Positions:
		return bad("budget of %d tokens after a prefix of %d, the model has %d positions", row.MaxTokens,
			len(row.Prefix), s.Positions)
	case all > b.pool.size:
		return bad("budget of %d tokens after a prefix of %d, the batch holds %d tokens", row.MaxTokens,
			len(row.Prefix), b.pool.size)
	case !(row.Temperature >= 0) || math.IsInf(row.Temperature, 0):
		return bad("temperature is %v", row.Temperature)
	}
	for _, t := range row.Stop {
		if t < 0 || int(t) >= s.Vocab {
			return bad("stop token %d, the vocabulary has %d", t, s.Vocab)
		}
	}
	return row.Truncation.Validate()
}

func (b *batch[T]) Remove(ctx context.Context, id int64) error {
	leave, err := b.lock(ctx)
	if err != nil {
		return fmt.Errorf("remove a row: %w", err)
	}
	defer leave()
	for i, r := range b.waiting {
		if r.id == id {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			b.retire(r)
			return nil
		}
	}
	for _, r := range b.joined {
		if r.id == id {
			r.ended = true
			b.leave()
			return nil
		}
	}
	return nil
}

// leave takes the ended rows out and keeps what later rows may begin with.
func (b *batch[T]) leave() {
	on := b.joined[:0]
	for _, r := range b.joined {
		if !r.ended {
			on = append(on, r)
			continue
		}
		b.retire(r)
	}
	clear(b.joined[len(on):])
	b.joined = on
	b.drop()
}

func (b *batch[T]) Usage() policy.BatchUsage {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	u := b.usage
	u.Rows, u.Tokens = len(b.waiting)+len(b.joined), b.pool.size
	for _, rows := range [][]*batchRow[T]{b.waiting, b.joined} {
		for _, r := range rows {
			u.Held += r.at.room
		}
	}
	for _, k := range b.kept {
		u.Kept += len(k.tokens)
	}
	return u
}

func (b *batch[T]) Close() error {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	b.team.stop()
	if !b.e.closed && len(b.memory)*4 <= keptBytes {
		b.e.caches = b.memory
	}
	b.caches, b.memory, b.waiting, b.joined, b.live, b.kept = nil, nil, nil, nil, nil, nil
	return nil
}
