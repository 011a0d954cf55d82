package remote

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/env"
)

// pythonPort begins episodes in several adapter processes, of which each runs one request at a time.
type pythonPort struct {
	keepers []*keeper[*process] // of one process each
	open    map[string]any      // the request that opens a session, without its number
	step    time.Duration       // time limit of a reset or step

	mu       sync.Mutex
	sessions []int // of each process
}

// newPythonPort makes a port for n processes.
func newPythonPort(n int, open map[string]any, step time.Duration, start func() (*process, error)) *pythonPort {
	p := &pythonPort{open: open, step: step, sessions: make([]int, n)}
	for range n {
		p.keepers = append(p.keepers, &keeper[*process]{what: "the Python adapter", start: start})
	}
	return p
}

// pick returns the process with the fewest sessions, the first of equals, for one more session until leave is called.
func (p *pythonPort) pick() (k *keeper[*process], leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.sessions, slices.Min(p.sessions))
	p.sessions[i]++
	return p.keepers[i], func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sessions[i]--
	}
}

// openTime is the time limit for opening a session if that of a step is shorter. Opening may load modules or start a
// server.
const openTime = 2 * time.Minute

// Begin opens a session and resets it.
func (p *pythonPort) Begin(ctx context.Context, task opening) (Session, Reply, error) {
	k, leave := p.pick()
	at, err := k.running(time.Now())
	if err != nil {
		leave()
		return nil, Reply{}, err
	}
	s := &pythonSession{at: at, number: at.numbers.Add(1), limit: p.step, leave: leave}
	request := maps.Clone(p.open)
	request["do"], request["session"] = "open", s.number
	if _, err := at.ask(ctx, max(openTime, p.step), request); err != nil {
		s.Close()
		return nil, Reply{}, err
	}
	s.opened = true
	k.opened()
	first, err := s.ask(ctx, map[string]any{"do": "reset", "session": s.number, "seed": task.Seed,
		"split": strings.ReplaceAll(string(task.Split), "-", "_")})
	return s, first, err
}

// Count implements counter.
func (p *pythonPort) Count(ctx context.Context) (train, heldOut int, err error) {
	request := maps.Clone(p.open)
	request["do"] = "tasks"
	got, err := inProcess(ctx, p.keepers[0], func(at *process) (reply, error) {
		return at.ask(ctx, max(openTime, p.step), request)
	})
	return got.Tasks["train"], got.Tasks["held_out"], err
}

// code returns the listing of the files that the running processes have imported. The first process is started if it
// does not run.
func (p *pythonPort) code(ctx context.Context) (string, error) {
	files, err := codeOf(ctx, p.keepers[0])
	if err != nil {
		return "", err
	}
	lines := slices.Collect(strings.Lines(files))
	for _, k := range p.keepers[1:] {
		if !k.alive() {
			continue
		}
		if files, err = codeOf(ctx, k); err != nil {
			return "", err
		}
		lines = slices.AppendSeq(lines, strings.Lines(files))
	}
	name := func(line string) string { return line[2*sha256.Size:] }
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(name(a), name(b)) })
	return strings.Join(slices.Compact(lines), ""), nil
}

// pythonSession is a session in an adapter process.
type pythonSession struct {
	at     *process
	number int64
	limit  time.Duration
	leave  func() // tells the port that the session has ended
	opened bool
	once   sync.Once
}

// closeTime is the time limit of a request that closes a session.
const closeTime = 5 * time.Second

// Step applies an action.
func (s *pythonSession) Step(ctx context.Context, action string) (Reply, error) {
	return s.ask(ctx, map[string]any{"do": "step", "session": s.number, "action": action})
}

// Solution implements solver.
func (s *pythonSession) Solution(ctx context.Context) ([]string, error) {
	got, err := s.at.ask(ctx, s.limit, map[string]any{"do": "solve", "session": s.number})
	if err == nil && len(got.Actions) == 0 {
		err = env.ErrUnsolved
	}
	return got.Actions, err
}

func (s *pythonSession) ask(ctx context.Context, request map[string]any) (Reply, error) {
	got, err := s.at.ask(ctx, s.limit, request)
	if err != nil {
		return Reply{}, err
	}
	if got.Text == nil || request["do"] == "step" && got.Reward == nil {
		return Reply{}, fmt.Errorf("the reply to %s lacks its text or reward", request["do"])
	}
	out := Reply{Text: *got.Text, Done: got.Done, Success: got.Success, Admissible: got.Admissible, Type: got.Type,
		Level: got.Level, Score: got.Score}
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
		s.leave()
	})
}
