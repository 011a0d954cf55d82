package remote

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/env"
)

// Solve returns what the other side would do next: the answer that a question's row holds, or the actions of the
// environment's own expert.
func (e *environment) Solve(ctx context.Context, state env.State) ([]string, error) {
	h, err := historyOf(state)
	if err != nil {
		return nil, err
	}
	if !e.Solved || h.Done {
		return nil, env.ErrUnsolved
	}
	s, plan, err := inSession(ctx, e, state, h, func(s Session) ([]string, error) { return solution(ctx, s) })
	if err != nil {
		return nil, err
	}
	e.live.put(string(state), s)
	return plan, nil
}

// Mislead returns what solves another training task: it has the form of a right action, and is most likely wrong.
func (e *environment) Mislead(ctx context.Context, state env.State, draw uint64) (string, error) {
	if _, err := historyOf(state); err != nil {
		return "", err
	}
	if !e.Solved {
		return "", env.ErrUnsolved
	}
	train, _, err := e.count(ctx)
	if err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		s, _, err := e.begin(ctx, e.training(int(draw%uint64(train))))
		if err != nil {
			return "", err
		}
		plan, err := solution(ctx, s)
		e.live.leave(s)
		if err == nil {
			return plan[0], nil
		}
		if try == tries || !errors.Is(err, ErrLost) {
			return "", err
		}
	}
}

// solution asks a session for the next actions of one who knows its task.
func solution(ctx context.Context, s Session) ([]string, error) {
	knows, ok := s.(solver)
	if !ok {
		return nil, env.ErrUnsolved
	}
	return knows.Solution(ctx)
}
