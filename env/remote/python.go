package remote

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// pythonPort begins episodes in one adapter process.
type pythonPort struct {
	keeper[*process]
	open map[string]any // the request that opens a session, without its number
	step time.Duration  // time limit of a reset or step
}

// openTime is the time limit for opening a session if that of a step is shorter. Opening may load modules or start a
// server.
const openTime = 2 * time.Minute

// Begin opens a session and resets it.
func (p *pythonPort) Begin(ctx context.Context, seed int) (Session, Reply, error) {
	at, err := p.running(time.Now())
	if err != nil {
		return nil, Reply{}, err
	}
	s := &pythonSession{at: at, number: at.numbers.Add(1), limit: p.step}
	request := maps.Clone(p.open)
	request["do"], request["session"] = "open", s.number
	if _, err := at.ask(ctx, max(openTime, p.step), request); err != nil {
		s.Close()
		return nil, Reply{}, err
	}
	s.opened = true
	p.opened()
	first, err := s.ask(ctx, map[string]any{"do": "reset", "session": s.number, "seed": seed})
	return s, first, err
}

// pythonSession is a session in an adapter process.
type pythonSession struct {
	at     *process
	number int64
	limit  time.Duration
	opened bool
	once   sync.Once
}

// closeTime is the time limit of a request that closes a session.
const closeTime = 5 * time.Second

// Step applies an action.
func (s *pythonSession) Step(ctx context.Context, action string) (Reply, error) {
	return s.ask(ctx, map[string]any{"do": "step", "session": s.number, "action": action})
}

// Solution returns the answer that the question's row holds.
func (s *pythonSession) Solution(ctx context.Context) (string, error) {
	got, err := s.at.ask(ctx, s.limit, map[string]any{"do": "answer", "session": s.number})
	if err != nil {
		return "", err
	}
	if got.Answer == nil || *got.Answer == "" {
		return "", fmt.Errorf("the question's row holds no answer as a text")
	}
	return *got.Answer, nil
}

func (s *pythonSession) ask(ctx context.Context, request map[string]any) (Reply, error) {
	got, err := s.at.ask(ctx, s.limit, request)
	if err != nil {
		return Reply{}, err
	}
	if got.Text == nil || request["do"] == "step" && got.Reward == nil {
		return Reply{}, fmt.Errorf("the reply to %s lacks its text or reward", request["do"])
	}
	out := Reply{Text: *got.Text, Done: got.Done, Success: got.Success}
	if got.Reward != nil {
		out.Reward = *got.Reward
	}
	return out, nil
}

// Close ends the session.
func (s *pythonSession) Close() {
	s.once.Do(func() {
		if s.opened && s.at.failure() == nil {
			// The session is gone in any case: an exception while it closes changes no result.
			_, _ = s.at.ask(context.Background(), closeTime, map[string]any{"do": "close", "session": s.number})
		}
		s.at.count(-1)
	})
}
