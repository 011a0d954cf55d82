package sokoban

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/env"
)

// Limits on the turns of an episode.
const (
	PaperTurns = 15  // 000 Table 8, 002 Table S1
	GymTurns   = 120 // gym-sokoban's max_steps
)

// Rewards of one turn, as in gym-sokoban.
const (
	rewardTurn   = -0.1
	rewardOn     = 1.0
	rewardOff    = -1.0
	rewardSolved = 10.0
)

// Settings choose the rooms and the limit of turns.
type Settings struct {
	// MaxTurns is the turn limit of an episode: PaperTurns, GymTurns or any other number from 1.
	MaxTurns int
	// Levels returns rooms that replace the generated ones (ReadLevels); nil if rooms are generated. It is called once,
	// when the first task is drawn.
	Levels func() ([]Level, error)
	// Size is the number of rows and columns of a generated room, including its wall: 5 to 10.
	Size int
	// Boxes is the number of boxes of a generated room: 1 to 4.
	Boxes int
	// MinMoves and MaxMoves bound the moves of a generated room's shortest solution.
	MinMoves, MaxMoves int
	// List shows a room as a list of cells instead of a drawing.
	List bool
	// Open makes generated rooms without walls inside.
	Open bool
	// GoalOnly gives 10 for the turn that solves a room and nothing for any other turn.
	GoalOnly bool
}

// DefaultSettings are the papers' settings: rooms of 6 × 6 cells, one box, 15 turns.
func DefaultSettings() Settings {
	return Settings{MaxTurns: PaperTurns, Size: 6, Boxes: 1, MinMoves: 2, MaxMoves: 12}
}

// Validate names the setting that makes an episode impossible.
func (s Settings) Validate() error {
	check := func(name string, value, low, high int) error {
		if value < low || value > high {
			return fmt.Errorf("check sokoban settings: %s must be %d to %d, got %d", name, low, high, value)
		}
		return nil
	}
	if err := check("max turns", s.MaxTurns, 1, 10_000); err != nil || s.Levels != nil {
		return err
	}
	return errors.Join(check("size", s.Size, 5, 10), check("boxes", s.Boxes, 1, 4),
		check("min moves", s.MinMoves, 1, s.MaxMoves), check("max moves", s.MaxMoves, s.MinMoves, s.MaxTurns))
}

// Sokoban is the environment.
type Sokoban struct {
	settings Settings
	rooms    func() (map[env.Split][]Level, error) // levels of each split; nil if rooms are generated
}

// New makes the environment.
func New(s Settings) (*Sokoban, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	e := &Sokoban{settings: s}
	if s.Levels != nil {
		e.rooms = sync.OnceValues(func() (map[env.Split][]Level, error) { return divide(s.Levels) })
	}
	return e, nil
}

// Name returns "sokoban".
func (*Sokoban) Name() string { return "sokoban" }

// spec is a task in JSON.
type spec struct {
	Rows []string `json:"rows"` // in Boxoban's form
	// Turns is the limit of turns.
	Turns int `json:"turns"`
}

// state is an episode's state in JSON.
type state struct {
	Rows  []string `json:"rows"`
	Turn  int      `json:"turn"` // turns taken
	Limit int      `json:"limit"`
	Ended bool     `json:"ended,omitempty"`
}

func (s state) encode() (env.State, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write a sokoban state: %w", err)
	}
	return text, nil
}

func readState(text env.State) (state, *room, error) {
	var s state
	if err := env.Decode(text, &s); err != nil {
		return s, nil, fmt.Errorf("read a sokoban state: %w", err)
	}
	r, err := parseRoom(s.Rows)
	if err != nil {
		return s, nil, fmt.Errorf("read a sokoban state: %w", err)
	}
	if s.Limit < 1 || s.Turn < 0 || s.Turn > s.Limit {
		return s, nil, fmt.Errorf("read a sokoban state: turn %d of %d", s.Turn, s.Limit)
	}
	return s, r, nil
}

// Instruction describes the rules and the symbols of the room.
func (s *Sokoban) Instruction(env.Task) (string, error) {
	if s.settings.List {
		return listed, nil
	}
	return instruction, nil
}

const instruction = `You are in a room of a Sokoban puzzle. Push every box onto a target to win.
Each action moves you by one cell: up, down, left or right. Moving into a box pushes it, if the cell behind it is free. ` +
	`Boxes cannot be pulled, and nothing moves through walls. A box in a corner is stuck.
The room is drawn with # for a wall, _ for floor, O for a target, X for a box, √ for a box on a target, P for you ` +
	`and S for you on a target.`

// Reset begins an episode of a task.
func (s *Sokoban) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Observation{}, err
	}
	var of spec
	if err := env.Decode([]byte(task.Spec), &of); err != nil {
		return nil, env.Observation{}, fmt.Errorf("read sokoban task %s: %w", task.ID, err)
	}
	r, err := parseRoom(of.Rows)
	if err == nil && of.Turns < 1 {
		err = fmt.Errorf("the limit of turns is %d", of.Turns)
	}
	if err != nil {
		return nil, env.Observation{}, fmt.Errorf("read sokoban task %s: %w", task.ID, err)
	}
	_, off := r.done()
	first := state{Rows: of.Rows, Limit: of.Turns, Ended: off == 0}
	out, err := first.encode()
	return out, s.observe(r, first.Ended), err
}

// admissible lists the actions that the policy is offered.
var admissible = []string{"up", "down", "left", "right"}

// observe draws the room, or lists its cells.
func (s *Sokoban) observe(r *room, ended bool) env.Observation {
	show := draw
	if s.settings.List {
		show = list
	}
	o := env.Observation{Parts: []env.Part{{Kind: env.PartText, Text: show(r)}}}
	if !ended {
		o.Admissible = append([]string(nil), admissible...)
	}
	return o
}

// symbols maps Boxoban's symbols to those of text versions of gym-sokoban.
var symbols = strings.NewReplacer(" ", "_", ".", "O", "$", "X", "*", "√", "@", "P", "+", "S")

func draw(r *room) string { return symbols.Replace(strings.Join(r.lines(), "\n")) }

// readAction finds the action in a policy's text by ARLArena's rule.
func readAction(text string) (d direction, moves, valid bool) {
	text = strings.ToLower(text)
	for _, d := range directions {
		if strings.Contains(text, d.name) {
			return d, true, true
		}
	}
	return direction{}, false, strings.Contains(text, still)
}

// Step moves the player.
func (s *Sokoban) Step(ctx context.Context, at env.State, action string) (env.State, env.Transition, error) {
	var none env.Transition
	if err := ctx.Err(); err != nil {
		return nil, none, err
	}
	now, r, err := readState(at)
	if err != nil {
		return nil, none, err
	}
	if now.Ended {
		return nil, none, fmt.Errorf("step a sokoban room at turn %d: %w", now.Turn, env.ErrEnded)
	}
	d, moves, valid := readAction(action)
	before, _ := r.done()
	if moves {
		r.push(d)
	}
	on, off := r.done()
	now.Rows, now.Turn = r.lines(), now.Turn+1
	now.Ended = off == 0 || now.Turn >= now.Limit
	next, err := now.encode()
	return next, env.Transition{
		Observation: s.observe(r, now.Ended), Reward: s.reward(on-before, off == 0), Done: now.Ended, Success: off == 0,
		Valid: valid,
	}, err
}

// reward returns the reward of a turn that brought the given number of boxes onto targets.
func (s *Sokoban) reward(brought int, solved bool) float64 {
	reward := rewardTurn
	switch {
	case s.settings.GoalOnly:
		reward = 0
	case brought > 0:
		reward += rewardOn
	case brought < 0:
		reward += rewardOff
	}
	if solved {
		reward += rewardSolved
	}
	return reward
}

// Situation returns the room without its turn count.
func (*Sokoban) Situation(at env.State) (string, error) {
	_, r, err := readState(at)
	if err != nil {
		return "", err
	}
	return strings.Join(r.lines(), "\n"), nil
}
