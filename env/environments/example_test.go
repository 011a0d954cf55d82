package environments

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// hunt declares the example of CONTRIBUTING.md: find a hidden number from the hints "higher" and "lower".
var hunt = env.Declaration{
	Name: "hunt", Doc: "finding a number by higher and lower", Interactive: true, Demonstrated: true,
	Protocol: "think_action",
	Rewards:  []string{"arlarena"}, Settings: env.SettingsOf[huntSettings](),
	Open: func(o env.Options) (env.Environment, error) {
		s, err := env.Read[huntSettings](o.Settings)
		return huntGround{highest: s.Highest, turns: o.MaxTurns}, err
	},
}

type huntSettings struct {
	Highest int `json:"highest" doc:"largest number that may be hidden" default:"9" min:"7" max:"1000"`
}

type huntGround struct{ highest, turns int }

// hunted is a state. Equal states have equal bytes.
type hunted struct {
	Hidden, Low, High, Left int
}

func (huntGround) Name() string { return "hunt" }

// Task hides a number. Exactly the multiples of five are held out.
func (g huntGround) Task(_ context.Context, at env.Draw) (env.Task, error) {
	rng := seed.Rand("hunt "+string(at.Split), at.Seed, uint64(at.Place()))
	if at.Split == env.HeldOut {
		rng = seed.Rand("hunt", uint64(at.Index)) // the same order for all runs
	} else if at.Split != env.Train {
		return env.Task{}, fmt.Errorf("draw a hunt: there is no split %q", at.Split)
	}
	n := 1 + rng.IntN(g.highest)
	for (n%5 == 0) != (at.Split == env.HeldOut) {
		n = 1 + rng.IntN(g.highest)
	}
	return env.Task{ID: "hunt-" + strconv.Itoa(n), Level: 1, Spec: strconv.Itoa(n)}, nil
}

func (g huntGround) Instruction(env.Task) (string, error) {
	return fmt.Sprintf("A number from 1 to %d is hidden. Each action is a guess.", g.highest), nil
}

func (g huntGround) Reset(_ context.Context, task env.Task) (env.State, env.Observation, error) {
	n, err := strconv.Atoi(task.Spec)
	if err != nil || task.ID != "hunt-"+task.Spec {
		return nil, env.Observation{}, fmt.Errorf("read hunt %s: %q hides nothing", task.ID, task.Spec)
	}
	return g.show(hunted{Hidden: n, Low: 1, High: g.highest, Left: g.turns}, "Guess.")
}

// show encodes a state and returns a hint about it.
func (g huntGround) show(h hunted, word string) (env.State, env.Observation, error) {
	state, err := json.Marshal(h)
	o := env.Observation{Parts: []env.Part{{Kind: env.PartText, Text: fmt.Sprintf("%s %d to %d", word, h.Low, h.High)}}}
	for n := h.Low; n <= h.High && h.Left > 0; n++ {
		o.Admissible = append(o.Admissible, strconv.Itoa(n))
	}
	return state, o, err
}

func (g huntGround) Step(ctx context.Context, state env.State, action string) (env.State, env.Transition, error) {
	h, err := read(state)
	if err != nil || ctx.Err() != nil {
		return nil, env.Transition{}, fmt.Errorf("guess: %w", firstOf(ctx.Err(), err))
	}
	if h.Left == 0 {
		return nil, env.Transition{}, fmt.Errorf("guess: %w", env.ErrEnded)
	}
	guess, err := strconv.Atoi(action)
	t, word := env.Transition{Valid: err == nil}, "What?"
	switch h.Left--; {
	case !t.Valid:
	case guess == h.Hidden:
		word, t.Success, t.Reward, h.Left = "Found.", true, 1, 0
	case guess < h.Hidden:
		word, h.Low = "Higher.", max(h.Low, guess+1)
	default:
		word, h.High = "Lower.", min(h.High, guess-1)
	}
	t.Done = h.Left == 0
	state, t.Observation, err = g.show(h, word)
	return state, t, err
}

func (huntGround) Situation(state env.State) (string, error) {
	h, err := read(state)
	return fmt.Sprint(h.Hidden, h.Low, h.High), err
}

// Solve halves the remaining range.
func (huntGround) Solve(_ context.Context, state env.State) ([]string, error) {
	h, err := read(state)
	var guesses []string
	for low, high := h.Low, h.High; err == nil; {
		guess := (low + high) / 2
		guesses = append(guesses, strconv.Itoa(guess))
		switch {
		case guess == h.Hidden && len(guesses) <= h.Left:
			return guesses, nil
		case guess == h.Hidden:
			return nil, env.ErrUnsolved
		case guess < h.Hidden:
			low = guess + 1
		default:
			high = guess - 1
		}
	}
	return nil, err
}

func read(state env.State) (h hunted, err error) {
	if err = json.Unmarshal(state, &h); err == nil && h.Hidden == 0 {
		err = fmt.Errorf("the state hides nothing")
	}
	return h, err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// defaults returns the default values of a declaration's settings.
func defaults(d env.Declaration) env.Settings {
	out := env.Settings{}
	for _, s := range d.Settings {
		var v any
		if err := yaml.Unmarshal([]byte(s.Default), &v); err != nil {
			panic(err)
		}
		out[s.Name] = v
	}
	return out
}
