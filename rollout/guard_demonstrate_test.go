package rollout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/sokoban"
)

// misled is sokoban whose other methods misbehave.
type misled struct {
	*sokoban.Sokoban
	task     func(ctx context.Context) error
	solve    func(ctx context.Context) ([]string, error)
	instruct func() (string, error)
}

func (m misled) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	if m.task != nil {
		if err := m.task(ctx); err != nil {
			return env.Task{}, err
		}
	}
	return m.Sokoban.Task(ctx, at)
}

func (m misled) Solve(ctx context.Context, s env.State) ([]string, error) {
	if m.solve != nil {
		return m.solve(ctx)
	}
	return m.Sokoban.Solve(ctx, s)
}

func (m misled) Instruction(task env.Task) (string, error) {
	if m.instruct != nil {
		return m.instruct()
	}
	return m.Sokoban.Instruction(task)
}

// A warm start whose environment misbehaves ends with a typed error in bounded time; nothing is cloned.
func TestHostileEnvironmentsInDemonstrations(t *testing.T) {
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	for name, c := range map[string]struct {
		world misled
		why   string
	}{
		"the expert panics": {misled{solve: func(context.Context) ([]string, error) { panic("lost") }}, "lost"},
		"the expert never returns": {misled{solve: func(context.Context) ([]string, error) {
			<-released
			return nil, nil
		}}, "a call has not returned within 100ms"},
		"tasks panic": {misled{task: func(context.Context) error { panic(errors.New("no rooms")) }}, "no rooms"},
		"tasks never come": {misled{task: func(context.Context) error {
			<-released
			return nil
		}}, "a call has not returned within 100ms"},
		"the instruction panics": {misled{instruct: func() (string, error) { panic("mute") }}, "mute"},
		"the instruction never comes": {misled{instruct: func() (string, error) {
			<-released
			return "", nil
		}}, "a call has not returned within 100ms"},
		"the instruction floods": {misled{instruct: func() (string, error) {
			return strings.Repeat("x", maxStateBytes+1), nil
		}}, "the instruction has 1048577 bytes"},
		"the instruction is no text": {misled{instruct: func() (string, error) { return "\xff", nil }}, "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			c.world.Sokoban = rooms(t).(*sokoban.Sokoban)
			l := actingLoop(t, c.world, 0)
			l.guard.limit = 100 * time.Millisecond
			_, err := demonstrated(t, l, nil, Script{}, 0, 3)
			require.ErrorIs(t, err, ErrEnvironment)
			require.ErrorContains(t, err, c.why)
		})
	}
}

// An expert that never comes to an end demonstrates an episode without success: the limit of turns ends it.
func TestExpertsThatNeverEnd(t *testing.T) {
	world := misled{Sokoban: rooms(t).(*sokoban.Sokoban), solve: func(context.Context) ([]string, error) {
		return []string{"still"}, nil
	}}
	demos, err := demonstrated(t, actingLoop(t, world, 0), nil, Script{}, 0, 2)
	require.NoError(t, err)
	for _, d := range demos {
		require.False(t, d.Right)
		require.Len(t, d.Episode.Turns, 6)
	}
}
