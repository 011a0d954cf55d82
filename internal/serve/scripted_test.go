package serve_test

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/policy"
)

// scripted is an engine that always writes the same tokens, or fails.
type scripted struct {
	policy.Batcher // the engine whose weights it names
	writes         []int32
	fails          func() error // nil = never
}

func (s *scripted) Batch(context.Context, policy.Role, policy.BatchOptions) (policy.Batch, error) {
	return &scriptedBatch{s: s, rows: map[int64]*scriptedRow{}}, nil
}

type scriptedBatch struct {
	s    *scripted
	mu   sync.Mutex
	next int64
	rows map[int64]*scriptedRow
}

type scriptedRow struct {
	policy.BatchRow
	at int
}

func (b *scriptedBatch) Add(_ context.Context, row policy.BatchRow) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	b.rows[b.next] = &scriptedRow{BatchRow: row}
	return b.next, nil
}

func (b *scriptedBatch) Step(context.Context) (events []policy.BatchEvent, err error) {
	if b.s.fails != nil {
		if err := b.s.fails(); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, r := range b.rows {
		e := policy.BatchEvent{Row: id, Sampled: true, Token: b.s.writes[r.at], LogProb: -1, Prefixed: r.at == 0}
		switch r.at++; {
		case r.at == len(b.s.writes):
			e.Finish = policy.FinishStop
		case r.at == r.MaxTokens:
			e.Finish = policy.FinishLength
		}
		if e.Finish != "" {
			delete(b.rows, id)
		}
		events = append(events, e)
	}
	return events, nil
}

func (b *scriptedBatch) Remove(_ context.Context, id int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rows, id)
	return nil
}

func (b *scriptedBatch) Usage() policy.BatchUsage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return policy.BatchUsage{Rows: len(b.rows), Tokens: 4096}
}

func (*scriptedBatch) Close() error { return nil }

// writing makes a server's engine write a text and end the turn.
func writing(text string) func(*serve.Options) {
	return func(o *serve.Options) {
		writes := append(o.Model.Tokens.Encode(text), o.Model.Shape.EOS...)
		o.Engine, o.Name = &scripted{Batcher: o.Engine, writes: writes}, "caller"
	}
}

func (p *poisoned) Batch(context.Context, policy.Role, policy.BatchOptions) (policy.Batch, error) {
	return &poisonedBatch{scriptedBatch{rows: map[int64]*scriptedRow{}}}, nil
}

type poisonedBatch struct{ scriptedBatch }

func (b *poisonedBatch) Step(context.Context) (events []policy.BatchEvent, err error) {
	for id := range b.rows {
		events = append(events, policy.BatchEvent{Row: id, Err: &policy.NonFiniteError{Name: "log-probability"}})
	}
	clear(b.rows)
	return events, nil
}
