package environments

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// guess declares an environment: find a number from 1 to 20 by the hints "higher" and "lower".
var guess = env.Declaration{
	Name: "guess", Doc: "finding a number by hints", Interactive: true, Protocol: "think_action",
	Rewards: []string{"arlarena"}, Open: func(o env.Options) (env.Environment, error) { return game{o.MaxTurns}, nil },
}

type game struct{ turns int }
type number struct{ Hidden, Left int } // the state of an episode; equal states have equal bytes as JSON

func (game) Name() string                         { return "guess" }
func (game) Instruction(env.Task) (string, error) { return "Guess a number from 1 to 20.", nil }

func (g game) Task(_ context.Context, at env.Draw) (env.Task, error) {
	n := 1 + 5*seed.Rand("guess", at.Seed, uint64(at.Place())).IntN(16)/4 // never a multiple of five
	if at.Split == env.HeldOut {
		n = 5 * (1 + at.Index%4) // in an order that no seed changes
	} else if at.Split != env.Train {
		return env.Task{}, fmt.Errorf("draw a number: there is no split %q", at.Split)
	}
	spec, err := json.Marshal(number{n, g.turns})
	return env.Task{ID: "guess-" + strconv.Itoa(n), Level: 1, Spec: string(spec)}, err
}

func (game) Reset(_ context.Context, task env.Task) (env.State, env.Observation, error) {
	return env.State(task.Spec), env.Seen("Ready."), json.Unmarshal([]byte(task.Spec), &number{})
}

func (game) Step(ctx context.Context, state env.State, action string) (env.State, env.Transition, error) {
	var now number
	if err := cmp.Or(ctx.Err(), json.Unmarshal(state, &now)); err != nil || now.Left < 1 {
		return nil, env.Transition{}, fmt.Errorf("guess: %w", cmp.Or(err, env.ErrEnded))
	}
	n, err := strconv.Atoi(action) // an action that is no number is a verdict, and no error
	t := env.Transition{Valid: err == nil, Success: n == now.Hidden}
	if now.Left--; t.Success {
		now.Left, t.Reward = 0, 10
	}
	t.Done, t.Observation = now.Left == 0, env.Seen([]string{"Higher", "Found", "Lower"}[1+cmp.Compare(n, now.Hidden)])
	state, err = json.Marshal(now)
	return state, t, err
}

func (game) Situation(state env.State) (string, error) { // all that decides what follows, but the limit of turns
	var now number
	err := json.Unmarshal(state, &now)
	return strconv.Itoa(now.Hidden), err
}
