// Package envtest holds the conformance suite of environments. It tests the contract of env.Environment.
package envtest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
)

// Case configures the tests of an environment.
type Case struct {
	Tasks int // number of tasks of each split for which episodes are played
	Turns int // number of turns after which an episode is abandoned, even if it has not ended
	// Nonsense are actions that the environment cannot parse or does not know.
	Nonsense []string
	// Solved is the smallest share of tasks that the environment's expert must solve; 0 if there is no expert.
	Solved float64
}

// Run runs the conformance suite on an environment.
func Run(t *testing.T, e env.Environment, c Case) {
	t.Helper()
	require.NotEmpty(t, e.Name())
	require.NotEmpty(t, c.Nonsense, "the case names no unreadable action")
	train, heldOut := Take(t, e, env.Train, 1, c.Tasks), Take(t, e, env.HeldOut, 1, c.Tasks)
	t.Run("tasks", func(t *testing.T) { testTasks(t, e, train, heldOut) })
	t.Run("episodes", func(t *testing.T) { testEpisodes(t, e, slices.Concat(train, heldOut), c) })
	t.Run("side by side", func(t *testing.T) { testConcurrency(t, e, train, c) })
	t.Run("bad states", func(t *testing.T) { testBadStates(t, e, train[0]) })
	if c.Solved > 0 {
		t.Run("expert", func(t *testing.T) { testExpert(t, e, slices.Concat(train, heldOut), c.Solved) })
	}
}

// Take draws the first n tasks of a split.
func Take(t *testing.T, e env.Environment, split env.Split, seed uint64, n int) []env.Task {
	t.Helper()
	tasks := make([]env.Task, 0, n)
	for i := range n {
		task, err := e.Task(t.Context(), env.Draw{Split: split, Seed: seed, Index: i})
		require.NoError(t, err)
		tasks = append(tasks, task)
	}
	return tasks
}

func testTasks(t *testing.T, e env.Environment, train, heldOut []env.Task) {
	require.Equal(t, train, Take(t, e, env.Train, 1, len(train)), "the same seed gives other tasks")
	last, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Index: len(train) - 1})
	require.NoError(t, err)
	require.Equal(t, train[len(train)-1], last, "a task depends on those that were drawn before it")
	require.NotEqual(t, train, Take(t, e, env.Train, 2, len(train)), "another seed gives the same order")
	require.Equal(t, heldOut, Take(t, e, env.HeldOut, 2, len(heldOut)), "held-out tasks depend on the seed")
	trained := map[string]bool{}
	for _, task := range train {
		trained[task.ID] = true
	}
	specs := map[string]string{}
	for _, task := range slices.Concat(train, heldOut) {
		words, err := e.Instruction(task)
		require.NoError(t, err)
		require.NotEmpty(t, words+task.Text, "task %s has neither instruction nor text", task.ID)
		spec, known := specs[task.ID]
		require.True(t, !known || spec == task.Spec, "two tasks have the id %s", task.ID)
		specs[task.ID] = task.Spec
		require.Positive(t, task.Level, "task %s has no level", task.ID)
	}
	for _, task := range heldOut {
		require.False(t, trained[task.ID], "task %s is in both splits", task.ID)
	}
	_, err = e.Task(t.Context(), env.Draw{Split: "no such split", Seed: 1})
	require.Error(t, err, "a split that does not exist has tasks")
}

// played is the record of one episode.
type played struct {
	actions []string
	states  []env.State
	first   env.Observation
	steps   []env.Transition
}

// play plays an episode with the given actions. If actions is nil, play chooses random actions, both admissible and
// nonsensical.
func play(ctx context.Context, e env.Environment, task env.Task, actions []string, rng *rand.Rand, c Case) (played,
	error) {
	var p played
	state, seen, err := e.Reset(ctx, task)
	if err != nil {
		return p, err
	}
	p.first, p.states = seen, []env.State{state}
	turns := len(actions)
	if actions == nil {
		turns = c.Turns
	}
	for i := range turns {
		var action string
		switch {
		case actions != nil:
			action = actions[i]
		case len(seen.Admissible) == 0 || rng.IntN(8) == 0:
			action = c.Nonsense[rng.IntN(len(c.Nonsense))]
		default:
			action = seen.Admissible[rng.IntN(len(seen.Admissible))]
		}
		next, step, err := e.Step(ctx, state, action)
		if err != nil {
			return p, err
		}
		p.actions, p.states, p.steps = append(p.actions, action), append(p.states, next), append(p.steps, step)
		if state, seen = next, step.Observation; step.Done {
			break
		}
	}
	return p, nil
}

func testEpisodes(t *testing.T, e env.Environment, tasks []env.Task, c Case) {
	ended := 0
	for i, task := range tasks {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		p, err := play(t.Context(), e, task, nil, rng, c)
		require.NoError(t, err)
		checkSteps(t, p, c)
		again, err := play(t.Context(), e, task, p.actions, nil, c)
		require.NoError(t, err)
		require.Equal(t, p, again, "task %s: the same actions led elsewhere", task.ID)
		checkForks(t, e, p)
		checkSituations(t, e, p)
		if last := len(p.steps) - 1; last >= 0 && p.steps[last].Done {
			ended++
			_, _, err := e.Step(t.Context(), p.states[last+1], p.actions[0])
			require.ErrorIs(t, err, env.ErrEnded, "an episode went on after its end")
		}
	}
	t.Logf("%d of %d random episodes ended within %d turns", ended, len(tasks), c.Turns)
}

// checkSteps checks the conditions that hold for every transition.
func checkSteps(t *testing.T, p played, c Case) {
	t.Helper()
	seen := p.first
	require.NotEmpty(t, seen.Parts, "the first observation is empty")
	for i, s := range p.steps {
		require.False(t, math.IsNaN(s.Reward) || math.IsInf(s.Reward, 0), "turn %d: reward %v", i, s.Reward)
		require.True(t, s.Done || !s.Success, "turn %d: success before the end", i)
		require.Equal(t, !slices.Contains(c.Nonsense, p.actions[i]), s.Valid, "turn %d: validity of %q", i,
			p.actions[i])
		require.True(t, !s.Done || len(s.Observation.Admissible) == 0, "turn %d: actions after the end", i)
		require.NotEmpty(t, s.Observation.Parts, "turn %d: the observation is empty", i)
	}
}

// checkForks steps from copies of an episode's states in another order. The results must equal the episode's.
func checkForks(t *testing.T, e env.Environment, p played) {
	t.Helper()
	for i := len(p.steps) - 1; i >= 0; i-- {
		before := bytes.Clone(p.states[i])
		state, step, err := e.Step(t.Context(), bytes.Clone(p.states[i]), p.actions[i])
		require.NoError(t, err)
		require.Equal(t, p.steps[i], step, "turn %d: a copy of the state led elsewhere", i)
		require.Equal(t, p.states[i+1], state, "turn %d: a copy of the state led elsewhere", i)
		require.Equal(t, before, []byte(p.states[i]), "turn %d: Step changed the state that it was given", i)
	}
}

// checkSituations checks that two states with the same situation respond in the same way to the same action, unless one
// response ends the episode. A situation does not include the limit on turns.
func checkSituations(t *testing.T, e env.Environment, p played) {
	t.Helper()
	at := map[string]int{}
	for i, state := range p.states[:len(p.steps)] {
		key, err := e.Situation(state)
		require.NoError(t, err)
		first, met := at[key]
		if !met {
			at[key] = i
			continue
		}
		_, here, err := e.Step(t.Context(), state, p.actions[first])
		require.NoError(t, err)
		if there := p.steps[first]; !here.Done && !there.Done {
			require.Equal(t, there, here, "turns %d and %d share a situation and not what follows", first, i)
		}
	}
}

func testConcurrency(t *testing.T, e env.Environment, tasks []env.Task, c Case) {
	const players = 4
	for i, task := range tasks[:min(len(tasks), 8)] {
		want, err := play(t.Context(), e, task, nil, rand.New(rand.NewPCG(uint64(i), 2)), c)
		require.NoError(t, err)
		var all sync.WaitGroup
		got, errs := make([]played, players), make([]error, players)
		for k := range players {
			all.Go(func() { got[k], errs[k] = play(t.Context(), e, task, want.actions, nil, c) })
		}
		all.Wait()
		for k := range players {
			require.NoError(t, errs[k])
			require.Equal(t, want, got[k], "an episode depends on others at the same time")
		}
	}
}

func testBadStates(t *testing.T, e env.Environment, task env.Task) {
	state, seen, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	action := "?"
	if len(seen.Admissible) > 0 {
		action = seen.Admissible[0]
	}
	for _, bad := range []env.State{nil, {}, []byte("{"), []byte("null"), []byte("[]"), state[:len(state)/2]} {
		_, _, err := e.Step(t.Context(), bad, action)
		require.Error(t, err, "Step took %q for a state", bad)
	}
	for _, bad := range []env.Task{{}, {ID: task.ID, Spec: "{"}, {ID: task.ID, Spec: task.Spec[:len(task.Spec)/2]}} {
		_, _, err := e.Reset(t.Context(), bad)
		require.Error(t, err, "Reset took %q for a task", bad.Spec)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = e.Step(ended, state, action)
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Situation([]byte("{"))
	require.Error(t, err, "a broken state has a situation")
}

func testExpert(t *testing.T, e env.Environment, tasks []env.Task, least float64) {
	expert, ok := e.(env.Expert)
	require.True(t, ok, "%s has no expert", e.Name())
	solved := 0
	for _, task := range tasks {
		state, _, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		actions, err := expert.Solve(t.Context(), state)
		if errors.Is(err, env.ErrUnsolved) {
			continue
		}
		require.NoError(t, err)
		p, err := play(t.Context(), e, task, actions, nil, Case{})
		require.NoError(t, err, "task %s: the expert's actions", task.ID)
		require.NotEmpty(t, p.steps)
		require.True(t, p.steps[len(p.steps)-1].Success, "task %s: the expert's actions do not reach the goal", task.ID)
		solved++
	}
	require.GreaterOrEqual(t, float64(solved)/float64(len(tasks)), least, "the expert solved %d of %d tasks", solved,
		len(tasks))
	t.Logf("the expert solved %d of %d tasks", solved, len(tasks))
}
