package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	SuccessFrom    float64  // sum of rewards from which an ended episode is a success, if the other side does not say
	StepTime       time.Duration
	MaxBytes       int // of an observation
	Sessions       int // live at once
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
	h := history{Seed: n, Actions: []string{}, Seen: []string{first.digest()}}
	state, err := e.keep(s, h)
	return state, e.observe(first), err
}

// begin opens a session and resets it.
func (e *environment) begin(ctx context.Context, n int) (Session, Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, e.StepTime)
	defer cancel()
	s, err := e.port.Open(ctx)
	if err != nil {
		return nil, Reply{}, fmt.Errorf("open a session: %w", err)
	}
	first, err := s.Reset(ctx, n)
	if err == nil {
		err = first.check(e.MaxBytes)
	}
	if err != nil {
		s.Close()
		return nil, first, fmt.Errorf("reset to seed %d: %w", n, err)
	}
	return s, first, nil
}

// keep puts a session into the pool, or closes it after the episode's end.
func (e *environment) keep(s Session, h history) (env.State, error) {
	state, err := h.state()
	if err != nil || h.Done {
		s.Close()
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
	s := e.live.take(string(state))
	if s == nil {
		if s, err = e.repeat(ctx, h); err != nil {
			return nil, env.Transition{}, err
		}
	}
	got, err := e.step(ctx, s, action)
	if err != nil {
		s.Close()
		return nil, env.Transition{}, fmt.Errorf("seed %d, action %d: %w", h.Seed, len(h.Actions)+1, err)
	}
	h = h.then(action, got)
	next, err := e.keep(s, h)
	return next, env.Transition{Observation: e.observe(got), Reward: got.Reward, Done: got.Done,
		Success: e.succeeded(h, got), Valid: true}, err
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

// step applies one action within its time limit.
func (e *environment) step(ctx context.Context, s Session, action string) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, e.StepTime)
	defer cancel()
	got, err := s.Step(ctx, action)
	if err == nil {
		err = got.check(e.MaxBytes)
	}
	return got, err
}

// repeat opens a session and brings it to a history. ErrDiffers says that it shows something else on the way.
func (e *environment) repeat(ctx context.Context, h history) (Session, error) {
	s, got, err := e.begin(ctx, h.Seed)
	for i := 0; err == nil; i++ {
		if got.digest() != h.Seen[i] {
			s.Close()
			return nil, fmt.Errorf("seed %d, after %d of %d actions: %w", h.Seed, i, len(h.Actions), ErrDiffers)
		}
		if i == len(h.Actions) {
			return s, nil
		}
		if got, err = e.step(ctx, s, h.Actions[i]); err != nil {
			s.Close()
			err = fmt.Errorf("repeat action %d of seed %d: %w", i+1, h.Seed, err)
		}
	}
	return nil, err
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

// Situation is the whole history: nothing else is known of the other side's state.
func (e *environment) Situation(state env.State) (string, error) {
	_, err := historyOf(state)
	return string(state), err
}
