package tool

import (
	"context"
	"sync"
)

// Sharing returns a toolbox in which equal calls run once, whichever episodes make them and whenever: a call takes the
// result of an equal one that has run, or that runs now. That holds for tools without effects and without state (Pure
// or Sandboxed, not Stateful). Other tools stay as they are. A call that breaks is not shared.
//
// The results are kept as long as the toolbox.
func Sharing(b Toolbox) Toolbox {
	out := make(Toolbox, len(b))
	for i, t := range b {
		out[i] = t
		if s := t.Spec(); !s.Stateful && (s.Repeat == Pure || s.Repeat == Sandboxed) {
			out[i] = &sharing{Tool: t, ran: map[string]*sharedRun{}}
		}
	}
	return out
}

type sharing struct {
	Tool
	mu  sync.Mutex
	ran map[string]*sharedRun // by Call.Digest
}

// sharedRun is the run of a call.
type sharedRun struct {
	done   chan struct{} // closed when result and ok are set
	result Result
	ok     bool // there is a verdict
}

// Run runs the calls that no equal one has run before, then waits for those that others run.
func (s *sharing) Run(ctx context.Context, calls []Call) ([]Result, error) {
	outcomes := make([]Outcome, len(calls))
	first, at := s.begin(calls)
	err := s.run(ctx, calls, first, at, outcomes)
	if err != nil {
		return nil, err
	}
	var alone []int
	for i := range calls {
		if first[i] {
			continue
		}
		select {
		case <-at[i].done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !at[i].ok {
			alone = append(alone, i)
			continue
		}
		outcomes[i].Result = at[i].result
		outcomes[i].Timing = Timing{Shared: true}
	}
	if err := s.runAlone(ctx, calls, alone, outcomes); err != nil {
		return nil, err
	}
	results, broken := make([]Result, len(calls)), make(CallErrors, len(calls))
	for i, o := range outcomes {
		results[i], broken[i] = o.Result, o.Broken
	}
	return results, broken.OrNil()
}

// begin finds each call's run. first says which runs are this caller's to make.
func (s *sharing) begin(calls []Call) (first []bool, at []*sharedRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, at = make([]bool, len(calls)), make([]*sharedRun, len(calls))
	for i, c := range calls {
		key := c.Digest()
		if at[i] = s.ran[key]; at[i] == nil {
			first[i], at[i] = true, &sharedRun{done: make(chan struct{})}
			s.ran[key] = at[i]
		}
	}
	return first, at
}

// run makes the runs that are this caller's to make.
func (s *sharing) run(ctx context.Context, calls []Call, first []bool, at []*sharedRun, outcomes []Outcome) error {
	var own []int
	for i := range calls {
		if first[i] {
			own = append(own, i)
		}
	}
	err := s.runAlone(ctx, calls, own, outcomes)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range own {
		if at[i].ok = err == nil && outcomes[i].Broken == nil; at[i].ok {
			at[i].result = outcomes[i].Result
		} else {
			delete(s.ran, calls[i].Digest())
		}
		close(at[i].done)
	}
	return err
}

// runAlone runs the calls at some indices, as one batch.
func (s *sharing) runAlone(ctx context.Context, calls []Call, indices []int, outcomes []Outcome) error {
	if len(indices) == 0 {
		return nil
	}
	batch := make([]Call, len(indices))
	for i, at := range indices {
		batch[i] = calls[at]
	}
	of, err := outcomesOf(ctx, s.Tool, batch)
	if err != nil {
		return err
	}
	for i, at := range indices {
		outcomes[at] = of[i]
	}
	return nil
}
