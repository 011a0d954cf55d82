package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// Settings are what an environment of this package is made of.
type Settings struct {
	Name        string
	Identity    string // distinguishes the tasks from those of other modules or servers
	Instruction string
	// Train and HeldOut are the numbers of tasks. The seeds of training tasks count from 0, those of held-out tasks
	// follow.
	Train, HeldOut int
	Actions        []string // the only actions; nil if any text is one
	Solved         bool     // sessions know a right action (Solver)
	SuccessFrom    float64  // sum of rewards from which an ended episode is a success, if the other side does not say
	MaxBytes       int      // of an observation
	Sessions       int      // alive at once
	Idle           time.Duration
}

// maxAction is the maximum length of an action in bytes. A longer one is invalid.
const maxAction = 4096

// environment is an environment whose episodes run on the other side of a port.
type environment struct {
	Settings
	port Port
	live *pool
}

// New returns the environment behind a port. It needs no closing: idle sessions end by themselves.
func New(port Port, s Settings) env.Environment {
	return &environment{Settings: s, port: port, live: newPool(s.Sessions, s.Idle)}
}

func (e *environment) Name() string { return e.Settings.Name }

func (e *environment) Instruction(env.Task) (string, error) { return e.Settings.Instruction, nil }

// Code implements env.Coded.
func (e *environment) Code(ctx context.Context) (string, error) {
	p, ok := e.port.(*pythonPort)
	if !ok {
		return "", nil
	}
	return codeOf(ctx, &p.keeper)
}

// Try implements env.Tried.
func (e *environment) Try(ctx context.Context) error {
	s, _, err := e.begin(ctx, 0)
	if err == nil {
		e.live.leave(s)
	}
	return err
}

// Task draws a seed. It asks no one, so tasks can be drawn without the other side.
func (e *environment) Task(_ context.Context, at env.Draw) (env.Task, error) {
	var n int
	switch at.Split {
	case env.Train:
		n = seed.Rand("remote task", at.Seed, uint64(at.Step), uint64(at.Index)).IntN(e.Train)
	case env.HeldOut:
		n = e.Train + at.Place()%e.HeldOut
	default:
		return env.Task{}, fmt.Errorf("environment %s has no split %q", e.Settings.Name, at.Split)
	}
	sum := sha256.Sum256([]byte(e.Identity + "\n" + strconv.Itoa(n)))
	return env.Task{ID: hex.EncodeToString(sum[:16]), Level: 1, Spec: fmt.Sprintf(`{"seed":%d}`, n)}, nil
}

// Reset begins an episode with a new session.
func (e *environment) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	var spec struct {
		Seed *int `json:"seed"`
	}
	if err := json.Unmarshal([]byte(task.Spec), &spec); err != nil || spec.Seed == nil || *spec.Seed < 0 {
		return nil, env.Observation{}, fmt.Errorf("task %s is not one of environment %s: %q has no seed", task.ID,
			e.Settings.Name, task.Spec)
	}
	n := *spec.Seed
	s, first, err := e.begin(ctx, n)
	if err != nil {
		return nil, env.Observation{}, err
	}
	state, err := e.keep(s, history{Seed: n, Actions: []string{}, Seen: []string{first.digest()}})
	return state, e.observe(first), err
}

// tries is how often a session may be lost in one call: the programs of other episodes may be in one process, and one
// of them may end it.
const tries = 3

// begin opens a session at the beginning of a seed's episode.
func (e *environment) begin(ctx context.Context, n int) (Session, Reply, error) {
	if err := e.live.enter(ctx); err != nil {
		return nil, Reply{}, err
	}
	for try := 1; ; try++ {
		s, first, err := e.port.Begin(ctx, n)
		if err == nil {
			err = first.check(e.MaxBytes)
		}
		if err == nil && first.Done {
			err = errors.New("the episode has ended before its first action")
		}
		if err == nil {
			return s, first, nil
		}
		if s != nil {
			s.Close()
		}
		if try == tries || !errors.Is(err, ErrLost) || ctx.Err() != nil {
			e.live.leave(nil)
			return nil, first, fmt.Errorf("reset to seed %d: %w", n, err)
		}
	}
}

// keep parks a session, or ends it after the episode's end.
func (e *environment) keep(s Session, h history) (env.State, error) {
	state, err := h.state()
	if err != nil || h.Done {
		e.live.leave(s)
		return state, err
	}
	e.live.put(string(state), s)
	return state, nil
}

// Step applies an action to the live session at the state, or to one that repeats the episode first.
func (e *environment) Step(ctx context.Context, state env.State, action string) (env.State, env.Transition, error) {
	h, err := historyOf(state)
	switch {
	case err != nil:
		return nil, env.Transition{}, err
	case h.Done:
		return nil, env.Transition{}, env.ErrEnded
	case ctx.Err() != nil:
		return nil, env.Transition{}, ctx.Err()
	}
	if fault := e.refuse(action); fault != "" {
		return slices.Clone(state), env.Transition{Observation: e.observe(Reply{Text: fault})}, nil
	}
	s, got, err := e.play(ctx, state, h, action)
	if err != nil {
		return nil, env.Transition{}, fmt.Errorf("seed %d, action %d: %w", h.Seed, len(h.Actions)+1, err)
	}
	if got.Refused {
		e.live.put(string(state), s)
		return slices.Clone(state), env.Transition{Observation: e.observe(got)}, nil
	}
	h = h.then(action, got)
	next, err := e.keep(s, h)
	return next, env.Transition{Observation: e.observe(got), Reward: got.Reward, Done: got.Done,
		Success: e.succeeded(h, got), Valid: true}, err
}

// play applies an action at a history and returns the session that did it. A session that is lost meanwhile is replaced
// by one that repeats the episode.
func (e *environment) play(ctx context.Context, state env.State, h history, action string) (Session, Reply, error) {
	for try := 1; ; try++ {
		s, got, err := e.live.take(string(state)), Reply{}, error(nil)
		if s == nil {
			s, err = e.repeat(ctx, h)
		}
		if err == nil {
			if got, err = e.step(ctx, s, action); err == nil {
				return s, got, nil
			}
			e.live.leave(s)
		}
		if try == tries || !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return nil, got, err
		}
	}
}

// refuse says why an action never reaches the other side; "" if it does.
func (e *environment) refuse(action string) string {
	switch {
	case action == "":
		return "There is no action."
	case len(action) > maxAction:
		return fmt.Sprintf("The action has more than %d bytes.", maxAction)
	case e.Actions != nil && !slices.Contains(e.Actions, action):
		return "This is not one of the actions."
	}
	return ""
}

// step applies one action and checks what it shows.
func (e *environment) step(ctx context.Context, s Session, action string) (Reply, error) {
	got, err := s.Step(ctx, action)
	if err == nil {
		err = got.check(e.MaxBytes)
	}
	return got, err
}

// repeat opens a session and brings it to a history. ErrDiffers says that it shows something else on the way.
func (e *environment) repeat(ctx context.Context, h history) (Session, error) {
	s, got, err := e.begin(ctx, h.Seed)
	if err != nil {
		return nil, err
	}
	for i, action := range h.Actions {
		if got.digest() != h.Seen[i] {
			err = fmt.Errorf("after %d of %d actions: %w", i, len(h.Actions), ErrDiffers)
		} else if got, err = e.step(ctx, s, action); err != nil {
			err = fmt.Errorf("repeat action %d: %w", i+1, err)
		}
		if err != nil {
			e.live.leave(s)
			return nil, err
		}
	}
	if got.digest() != h.Seen[len(h.Actions)] {
		e.live.leave(s)
		return nil, fmt.Errorf("after %d actions: %w", len(h.Actions), ErrDiffers)
	}
	return s, nil
}

// succeeded decides whether an episode has ended at its goal.
func (e *environment) succeeded(h history, got Reply) bool {
	if !got.Done {
		return false
	}
	if got.Success != nil {
		return *got.Success
	}
	return h.Paid >= e.SuccessFrom
}

func (e *environment) observe(r Reply) env.Observation {
	o := env.Observation{Parts: []env.Part{{Kind: env.PartText, Text: r.Text}}}
	if e.Actions != nil && !r.Done {
		o.Admissible = slices.Clone(e.Actions)
	} else if e.Actions != nil {
		o.Admissible = []string{}
	}
	return o
}

// Solve returns the answer that a question's row holds. Environments of which the other side knows no solution, and
// episodes that have begun, are unsolved.
func (e *environment) Solve(ctx context.Context, state env.State) ([]string, error) {
	h, err := historyOf(state)
	if err != nil {
		return nil, err
	}
	if !e.Solved || len(h.Actions) > 0 {
		return nil, env.ErrUnsolved
	}
	if s := e.live.take(string(state)); s != nil {
		if solver, ok := s.(Solver); ok {
			if answer, err := solver.Solution(ctx); err == nil {
				e.live.put(string(state), s)
				return []string{answer}, nil
			}
		}
		e.live.leave(s)
	}
	answer, err := e.solution(ctx, h.Seed)
	return []string{answer}, err
}

// Mislead returns the answer to another training question: it has the form of an answer, and is most likely wrong.
func (e *environment) Mislead(ctx context.Context, state env.State, draw uint64) (string, error) {
	if _, err := historyOf(state); err != nil {
		return "", err
	}
	if !e.Solved {
		return "", env.ErrUnsolved
	}
	return e.solution(ctx, int(draw%uint64(e.Train)))
}

// solution asks the other side for an action that solves the task of a seed.
func (e *environment) solution(ctx context.Context, n int) (answer string, err error) {
	for try := 1; ; try++ {
		s, _, err := e.begin(ctx, n)
		if err != nil {
			return "", err
		}
		if solver, ok := s.(Solver); ok {
			answer, err = solver.Solution(ctx)
		} else {
			err = env.ErrUnsolved
		}
		e.live.leave(s)
		if err == nil || try == tries || !errors.Is(err, ErrLost) {
			return answer, err
		}
	}
}

// Situation is the whole history: nothing else is known of the other side's state.
func (e *environment) Situation(state env.State) (string, error) {
	_, err := historyOf(state)
	return string(state), err
}
