package household

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// PaperTurns is ALFWorld's limit of turns.
const PaperTurns = 50

// rewardGoal is what the turn that reaches the goal pays.
const rewardGoal = 10

// Settings choose the rooms and the tasks. Zero values are the full-size world.
type Settings struct {
	MaxTurns int      // limit of turns, from 1
	Rooms    []string // kinds of rooms; none = all four
	Types    []string // task types; none = all six
	Layouts  int      // layouts of each kind of room; 0 = 30
	Places   int      // places of a room; 0 = as many as the layout has
	Things   int      // things of a room; 0 = one to two for each place
	Sparse   bool     // no more things of the goal's class than the goal needs
	// Essential leaves out the commands that cannot bring the agent nearer to a goal.
	Essential bool
	Seen      bool // held-out tasks come from layouts that training shows
	Put       bool // the words of ALFWorld's first releases: "put mug 1 in/on desk 1"
	// Games is a folder of ALFWorld's own games, which replace the generated rooms; "" = none. Digest is the one that
	// they must have; "" accepts any.
	Games, Digest string
}

// Validate names the setting that makes a task impossible.
func (s Settings) Validate() error {
	check := func(name string, value, low, high int) error {
		if value < low || value > high {
			return fmt.Errorf("check household settings: %s must be %d to %d, got %d", name, low, high, value)
		}
		return nil
	}
	optional := func(name string, value, low, high int) error {
		if value == 0 {
			return nil
		}
		return check(name, value, low, high)
	}
	err := errors.Join(check("max turns", s.MaxTurns, 1, 10_000), optional("layouts", s.Layouts, 2, 1000),
		optional("places", s.Places, 3, 60), optional("things", s.Things, 1, 100))
	if s.Games != "" && (len(s.Rooms) > 0 || s.Layouts+s.Places+s.Things > 0 || s.Sparse || s.Put) {
		err = errors.Join(err, errors.New("check household settings: games: rooms, layouts, places, things, sparse "+
			"and put are of generated rooms, and cannot be set with a folder of games"))
	}
	for _, r := range s.Rooms {
		if !slices.ContainsFunc(rooms, func(k room) bool { return k.name == r }) {
			err = errors.Join(err, fmt.Errorf("check household settings: rooms: there is no %q; there are kitchen, "+
				"livingroom, bedroom and bathroom", r))
		}
	}
	for _, name := range s.Types {
		if _, ok := typeNamed(name); !ok {
			err = errors.Join(err, fmt.Errorf("check household settings: types: there is no %q; there are %s", name,
				strings.Join(Settings{}.typeNames(), ", ")))
		}
	}
	return err
}

// types returns the task types of the settings.
func (s Settings) types() (out []taskType) {
	for _, t := range taskTypes {
		if len(s.Types) == 0 || slices.Contains(s.Types, t.name) {
			out = append(out, t)
		}
	}
	return out
}

func (s Settings) typeNames() (out []string) {
	for _, t := range s.types() {
		out = append(out, t.name)
	}
	return out
}

// Household is the environment.
type Household struct {
	settings      Settings
	shown, unseen []layout
	games         *library // nil if rooms are generated
}

// New makes the environment.
func New(s Settings) (*Household, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Games != "" {
		return &Household{settings: s, games: newLibrary(s)}, nil
	}
	if s.Layouts == 0 {
		s.Layouts = 30
	}
	e := &Household{settings: s}
	e.shown, e.unseen = s.layouts()
	if len(e.shown) == 0 || len(e.unseen) == 0 {
		return nil, fmt.Errorf("check household settings: %d layouts of each room are only %d different ones, too few "+
			"to keep some from training; more layouts or places may help", s.Layouts, len(e.shown)+len(e.unseen))
	}
	return e, nil
}

// Name returns "alfworld".
func (*Household) Name() string { return "alfworld" }

// Instruction states the goal.
func (e *Household) Instruction(task env.Task) (string, error) {
	w, err := e.readTask(task)
	if err != nil {
		return "", err
	}
	return instruction + "Your task is to: " + w.Goal.String() + ".", nil
}

const instruction = "You act in a house by commands. "

// Reset begins an episode of a task.
func (e *Household) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Observation{}, err
	}
	w, err := e.readTask(task)
	if err != nil {
		return nil, env.Observation{}, err
	}
	w.Ended = w.reached()
	view := w.middle()
	if w.game != nil {
		view = welcome + w.first()
	}
	return w.encode(), e.observe(w, view+"\n\nYour task is to: "+w.Goal.String()+"."), nil
}

func (e *Household) observe(w *world, text string) env.Observation {
	o := env.Observation{Parts: []env.Part{{Kind: env.PartText, Text: text}}}
	if !w.Ended {
		for _, c := range e.commands(w) {
			o.Admissible = append(o.Admissible, c.text)
		}
	}
	return o
}

// Step applies a command.
func (e *Household) Step(ctx context.Context, at env.State, action string) (env.State, env.Transition, error) {
	var t env.Transition
	if err := ctx.Err(); err != nil {
		return nil, t, err
	}
	w, err := e.readState(at)
	if err != nil {
		return nil, t, err
	}
	if w.Ended {
		return nil, t, fmt.Errorf("step a household task at turn %d: %w", w.Turn, env.ErrEnded)
	}
	c, ok := e.find(w, action)
	text := nothing
	if ok {
		w.do(c)
		text = e.answer(w, c)
	}
	w.Turn++
	t.Valid, t.Success = ok, ok && w.reached()
	if t.Success {
		t.Reward = rewardGoal
	}
	w.Ended = t.Success || w.Turn >= w.Limit
	t.Done, t.Observation = w.Ended, e.observe(w, text)
	return w.encode(), t, nil
}

// Situation returns the state without its turn count.
func (e *Household) Situation(at env.State) (string, error) {
	w, err := e.readState(at)
	if err != nil {
		return "", err
	}
	w.Turn, w.Limit = 0, 1
	return string(w.encode()), nil
}
