package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// pythonPort opens sessions in one adapter process. It starts the process when a session is wanted, and again after the
// process has died. Deaths in a row make it wait longer before the next start. Without sessions the process ends.
type pythonPort struct {
	interpreter func() (string, error)
	open        map[string]any // the request that opens a session, without its number
	most        int            // bytes of a reply
	idle        time.Duration  // after which a process without sessions ends

	mu     sync.Mutex
	now    *process
	deaths int // since the last session that opened
	after  time.Time
}

// The wait before a start grows from firstWait by doubling to lastWait.
const (
	firstWait = time.Second
	lastWait  = time.Minute
)

// running returns the process, which it starts if there is none.
func (p *pythonPort) running(now time.Time) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil {
		p.now.count(1) // before the look at its end, so that it does not end as idle in between
		err := p.now.failure()
		if err == nil {
			return p.now, nil
		}
		p.now = nil
		if !errors.Is(err, errIdle) {
			p.after = now.Add(min(lastWait, firstWait<<min(p.deaths, 10)))
			if p.deaths == 0 {
				p.after = now
			}
			p.deaths++
		}
	}
	if now.Before(p.after) {
		return nil, fmt.Errorf("the Python adapter died %d times in a row; the next start is at %s", p.deaths,
			p.after.UTC().Format(time.TimeOnly))
	}
	name, err := p.interpreter()
	if err != nil {
		return nil, err
	}
	made, err := startProcess(name, p.most, p.idle)
	if err != nil {
		return nil, err
	}
	made.count(1)
	p.now = made
	return made, nil
}

// errIdle is the reason that ends a process without sessions.
var errIdle = errors.New("the Python adapter has no sessions")

// count changes the number of sessions. A process that stays without sessions for the idle time ends: loading modules
// again for each episode would take longer than most episodes.
func (p *process) count(by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open += by
	if p.rest != nil {
		p.rest.Stop()
	}
	if p.open == 0 {
		p.rest = time.AfterFunc(p.idle, p.endIdle)
	}
}

// endIdle ends the process if it still has no sessions.
func (p *process) endIdle() {
	p.mu.Lock()
	idle := p.open == 0 && p.dead == nil
	if idle {
		p.dead = errIdle // under the lock, so that no session opens in between
	}
	p.mu.Unlock()
	if idle {
		p.stop()
	}
}

// Open opens a session.
func (p *pythonPort) Open(ctx context.Context) (Session, error) {
	at, err := p.running(time.Now())
	if err != nil {
		return nil, err
	}
	s := &pythonSession{at: at, number: at.number()}
	request := maps.Clone(p.open)
	request["do"], request["session"] = "open", s.number
	if _, err := at.ask(ctx, request); err != nil {
		s.Close()
		return nil, err
	}
	s.opened = true
	p.mu.Lock()
	p.deaths = 0
	p.mu.Unlock()
	return s, nil
}

// number returns a new session's number.
func (p *process) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.next
}

// pythonSession is a session in an adapter process.
type pythonSession struct {
	at     *process
	number int
	opened bool
	once   sync.Once
}

// closeTime is the time limit of a request that closes a session.
const closeTime = 5 * time.Second

func (s *pythonSession) Reset(ctx context.Context, seed int) (Reply, error) {
	return s.ask(ctx, map[string]any{"do": "reset", "session": s.number, "seed": seed})
}

func (s *pythonSession) Step(ctx context.Context, action string) (Reply, error) {
	return s.ask(ctx, map[string]any{"do": "step", "session": s.number, "action": action})
}

func (s *pythonSession) ask(ctx context.Context, request map[string]any) (Reply, error) {
	got, err := s.at.ask(ctx, request)
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

func (s *pythonSession) Close() {
	s.once.Do(func() {
		if s.opened && s.at.failure() == nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeTime)
			defer cancel()
			// The session is gone in any case: an exception while it closes changes no result.
			_, _ = s.at.ask(ctx, map[string]any{"do": "close", "session": s.number})
		}
		s.at.count(-1)
	})
}
