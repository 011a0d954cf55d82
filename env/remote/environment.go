package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/env"
)

// Settings are what an environment of this package is made of.
type Settings struct {
	Name        string
	Identity    string // distinguishes the tasks from those of other modules or servers
	Instruction string
	// Train and HeldOut are the numbers of tasks. The seeds of training tasks count from 0, those of held-out tasks
	// follow. If both are 0, the other side says how many tasks each split has, and seeds count within the split.
	Train, HeldOut int
	Actions        []string // the only actions; nil if any text is one
	Solved         bool     // sessions know how to solve their tasks (solver)
	Expert         bool     // an expert plays, instead of rows that hold answers
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
	said taskCount
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
	return p.code(ctx)
}

// Try implements env.Tried.
func (e *environment) Try(ctx context.Context) error {
	if _, _, err := e.count(ctx); err != nil {
		return err
	}
	s, _, err := e.begin(ctx, e.training(0))
	if err != nil {
		return err
	}
	defer e.live.leave(s)
	if !e.Expert {
		return nil
	}
	if _, err := solution(ctx, s); err != nil && !errors.Is(err, env.ErrUnsolved) {
		return fmt.Errorf("expert: %w", err)
	}
	return nil
}

// Reset begins an episode with a new session.
func (e *environment) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	o, err := e.openingOf(task)
	if err != nil {
		return nil, env.Observation{}, err
	}
	s, first, err := e.begin(ctx, o)
	if err != nil {
		return nil, env.Observation{}, err
	}
	h := begun(o, first)
	state, err := e.keep(s, h)
	return state, e.observe(h, first.Text), err
}

// tries is how often a session may be lost in one call: the programs of other episodes may be in one process, and one
// of them may end it.
const tries = 3

// begin opens a session at the beginning of an episode.
func (e *environment) begin(ctx context.Context, task opening) (Session, Reply, error) {
	if err := e.live.enter(ctx); err != nil {
		return nil, Reply{}, err
	}
	for try := 1; ; try++ {
		s, first, err := e.port.Begin(ctx, task)
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
			return nil, first, fmt.Errorf("reset to %s: %w", task, err)
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
		return slices.Clone(state), env.Transition{Observation: e.observe(h, fault)}, nil
	}
	s, got, err := inSession(ctx, e, state, h, func(s Session) (Reply, error) { return e.step(ctx, s, action) })
	if err != nil {
		return nil, env.Transition{}, fmt.Errorf("%s, action %d: %w", h.opening, len(h.Actions)+1, err)
	}
	if got.Refused {
		e.live.put(string(state), s)
		return slices.Clone(state), env.Transition{Observation: e.observe(h, got.Text)}, nil
	}
	valid := h.Admissible == nil || slices.Contains(h.Admissible, action)
	if got.Done && h.Admissible != nil {
		got.Admissible = []string{}
	}
	h = h.then(action, got)
	next, err := e.keep(s, h)
	return next, env.Transition{Observation: e.observe(h, got.Text), Reward: got.Reward, Done: got.Done,
		Success: e.succeeded(h, got), Valid: valid}, err
}

// inSession does something in the live session at a state, or in one that repeats the episode first, and returns the
// session. A session that is lost meanwhile is replaced by one that repeats the episode.
func inSession[T any](ctx context.Context, e *environment, state env.State, h history,
	do func(Session) (T, error)) (s Session, got T, err error) {
	for try := 1; ; try++ {
		if s, err = e.live.take(string(state)), nil; s == nil {
			s, err = e.repeat(ctx, h)
		}
		if err == nil {
			if got, err = do(s); err == nil {
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
	s, got, err := e.begin(ctx, h.opening)
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

// observe makes the observation at a history.
func (e *environment) observe(h history, text string) env.Observation {
	o := env.Seen(text, h.Admissible...)
	if h.Admissible == nil && e.Actions != nil {
		o.Admissible = e.Actions
	}
	if h.Done && o.Admissible != nil {
		return env.Seen(text, []string{}...)
	}
	o.Admissible = slices.Clone(o.Admissible)
	return o
}

// Situation is the whole history: nothing else is known of the other side's state.
func (e *environment) Situation(state env.State) (string, error) {
	_, err := historyOf(state)
	return string(state), err
}
