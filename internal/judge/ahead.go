package judge

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// ahead is a prompt that was asked before Ask was called. Once done is closed, it has an answer or an error.
type ahead struct {
	done   chan struct{}
	answer Answer
	err    error
}

// Begin asks a query without waiting for the answer, until ctx ends. Ask waits for the answers to the prompts that have
// begun, and asks those again that ended with an error. After such an error nothing more begins, because the judge is
// away or cannot be asked. Nothing may begin after Close.
func (j *Judge) Begin(ctx context.Context, q reward.Query) {
	p := j.prompt(q)
	j.early.Lock()
	defer j.early.Unlock()
	if j.failed.Load() || j.begun[p.digest] != nil {
		return
	}
	a := &ahead{done: make(chan struct{})}
	if j.begun == nil {
		j.begun = map[string]*ahead{}
	}
	j.begun[p.digest] = a
	j.asking.Go(func() {
		defer close(a.done)
		a.err = j.ask(ctx, p, a)
	})
}

// errEarlier: another prompt had an error before this one's turn.
var errEarlier = errors.New("not asked: the judge failed before")

// ask asks a prompt in its turn.
func (j *Judge) ask(ctx context.Context, p prompt, a *ahead) (err error) {
	end, err := j.turn(ctx)
	if err != nil {
		return err
	}
	defer end()
	if j.failed.Load() {
		return errEarlier
	}
	err = rescue.Do(func() (err error) { a.answer, err = j.answer(ctx, p); return err })
	if err != nil { // the next one, whose turn comes after this, is not asked
		j.failed.Store(true)
	}
	return err
}

// turn waits until another query can be asked. The caller calls end.
func (j *Judge) turn(ctx context.Context) (end func(), err error) {
	select {
	case j.slots <- struct{}{}:
		return func() { <-j.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answered returns the answer to a prompt that has begun, or asks it in its turn.
func (j *Judge) answered(ctx context.Context, p prompt) (Answer, error) {
	j.early.Lock()
	a := j.begun[p.digest]
	j.early.Unlock()
	if a != nil {
		select {
		case <-a.done:
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
		if a.err == nil {
			return a.answer, nil
		}
	}
	end, err := j.turn(ctx)
	if err != nil {
		return Answer{}, err
	}
	defer end()
	return j.answer(ctx, p)
}
