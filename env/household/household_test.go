package household

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

func newHousehold(t testing.TB, s Settings) *Household {
	t.Helper()
	if s.MaxTurns == 0 {
		s.MaxTurns = PaperTurns
	}
	e, err := New(s)
	require.NoError(t, err)
	return e
}

// tiny is a room that a tiny policy can learn.
var tiny = Settings{MaxTurns: 14, Types: []string{"pick", "look"}, Places: 5, Things: 3, Sparse: true, Essential: true}

func TestHouseholdsConform(t *testing.T) {
	for name, s := range map[string]Settings{
		"full": {}, "tiny": tiny, "seen": {Seen: true}, "first words": {Put: true},
		"kitchens": {Rooms: []string{"kitchen"}, Types: []string{"clean", "heat", "cool"}, Places: 8, Things: 4},
	} {
		t.Run(name, func(t *testing.T) {
			envtest.Run(t, newHousehold(t, s), envtest.Case{Tasks: 40, Turns: 60, Solved: 1,
				Nonsense: []string{"", "sing", "go to attic 1", "<action>look</action>"}})
		})
	}
}

// The expert solves 2,000 generated tasks, or as many as ROPEWALK_TASKS says.
func TestTheExpertSolvesEveryTask(t *testing.T) {
	n := 2000
	if text := os.Getenv("ROPEWALK_TASKS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	e := newHousehold(t, Settings{})
	ids, types, rooms := map[string]bool{}, map[string]int{}, map[string]int{}
	for i := range n {
		split := env.Train
		if i%4 == 0 {
			split = env.HeldOut
		}
		task, err := e.Task(t.Context(), env.Draw{Split: split, Seed: 1, Step: 1, Index: i})
		require.NoError(t, err)
		ids[task.ID] = true
		types[task.Type]++
		w, err := e.readTask(task)
		require.NoError(t, err)
		rooms[strings.Fields(w.Room)[0]]++
		plan, err := e.Solve(t.Context(), env.State(task.Spec))
		require.NoError(t, err, task.Spec)
		state := env.State(task.Spec)
		for k, action := range plan {
			next, step, err := e.Step(t.Context(), state, action)
			require.NoError(t, err)
			require.True(t, step.Valid, "task %s: %q", task.Spec, action)
			require.Equal(t, k == len(plan)-1, step.Success, "task %s: %q", task.Spec, action)
			state = next
		}
	}
	require.Greater(t, len(ids), n*99/100, "tasks repeat")
	require.Len(t, types, 6)
	for name, k := range types {
		require.Greater(t, k, n/12, name)
	}
	require.Len(t, rooms, 4)
	t.Logf("%d tasks, %d of them different, all solved: %v %v", n, len(ids), types, rooms)
}

// Training never shows an unseen layout, and held-out tasks in shown layouts are none of training's.
func TestSplitsByLayout(t *testing.T) {
	unseen, seen := newHousehold(t, Settings{}), newHousehold(t, Settings{Seen: true})
	shown, ids := map[string]bool{}, map[string]bool{}
	for _, task := range envtest.Take(t, unseen, env.Train, 1, 400) {
		w, err := unseen.readTask(task)
		require.NoError(t, err)
		shown[w.Room], ids[task.ID] = true, true
	}
	require.Greater(t, len(shown), 80)
	for _, task := range envtest.Take(t, unseen, env.HeldOut, 1, 200) {
		w, err := unseen.readTask(task)
		require.NoError(t, err)
		require.False(t, shown[w.Room], "%s is trained on", w.Room)
	}
	known := 0
	for _, task := range envtest.Take(t, seen, env.HeldOut, 1, 200) {
		w, err := unseen.readTask(task)
		require.NoError(t, err)
		require.True(t, w.kept())
		require.False(t, ids[task.ID])
		if shown[w.Room] {
			known++
		}
	}
	require.Greater(t, known, 150)
	require.Equal(t, envtest.Take(t, unseen, env.Train, 1, 20), envtest.Take(t, seen, env.Train, 1, 20),
		"training depends on what is held out")
	require.NotEmpty(t, unseen.unseen)
	keys := map[string]bool{}
	for _, l := range slices.Concat(unseen.shown, unseen.unseen) {
		require.False(t, keys[l.key()], "%s is there twice", l.name)
		keys[l.key()] = true
	}
}

// The level of a task is the number of commands of the shortest solution, by a plain breadth-first search.
func TestLevelsOfTinyTasks(t *testing.T) {
	e := newHousehold(t, Settings{MaxTurns: 20, Places: 4, Things: 2, Sparse: true, Essential: true})
	for _, task := range envtest.Take(t, e, env.Train, 3, 60) {
		w, err := e.readTask(task)
		require.NoError(t, err)
		best := e.shortest(w)
		require.GreaterOrEqual(t, task.Level, best, task.Spec)
		if w.Goal.Type != "two" { // the order of two errands can cost a detour
			require.Equal(t, best, task.Level, task.Spec)
		}
	}
}

// shortest is the number of commands of the shortest solution.
func (e *Household) shortest(start *world) int {
	key := func(w *world) string {
		at := *w
		at.Turn = 0
		return string(at.encode())
	}
	seen := map[string]bool{key(start): true}
	for layer, n := []*world{start}, 0; len(layer) > 0; n++ {
		var next []*world
		for _, w := range layer {
			if w.reached() {
				return n
			}
			for _, c := range e.commands(w) {
				after := w.clone()
				after.do(c)
				if k := key(after); !seen[k] {
					seen[k] = true
					next = append(next, after)
				}
			}
		}
		layer = next
	}
	return -1
}

// From any state that random play reaches, the expert still reaches the goal.
func TestTheExpertGoesOnFromAnywhere(t *testing.T) {
	s := tiny
	s.MaxTurns, s.Types = 60, nil
	e := newHousehold(t, s)
	for i, task := range envtest.Take(t, e, env.Train, 5, 200) {
		rng := rand.New(rand.NewPCG(uint64(i), 3))
		state, seen, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		ended := false
		for range 20 {
			next, step, err := e.Step(t.Context(), state, seen.Admissible[rng.IntN(len(seen.Admissible))])
			require.NoError(t, err)
			if state, seen, ended = next, step.Observation, step.Done; ended {
				break
			}
		}
		if ended {
			continue
		}
		plan, err := e.Solve(t.Context(), state)
		require.NoError(t, err, string(state))
		require.NotEmpty(t, plan)
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for field, s := range map[string]Settings{
		"max turns":              {},
		"layouts must be":        {MaxTurns: 9, Layouts: 1},
		"places":                 {MaxTurns: 9, Places: 2},
		"things":                 {MaxTurns: 9, Things: 101},
		`rooms: there is no "a`:  {MaxTurns: 9, Rooms: []string{"attic"}},
		`types: there is no "si`: {MaxTurns: 9, Types: []string{"sing"}},
	} {
		_, err := New(s)
		require.ErrorContains(t, err, field)
	}
	_, err := Declaration.Open(env.Options{MaxTurns: 9, Settings: env.Settings{"types": "pick,dance"}})
	require.ErrorContains(t, err, `there is no "dance"; there are pick, look, clean, heat, cool, two`)
	e := newHousehold(t, Settings{MaxTurns: 2})
	_, err = e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.ErrorContains(t, err, "none allows a task of the types pick, look, clean, heat, cool, two within 2 turns")
}

func BenchmarkTask(b *testing.B) {
	e := newHousehold(b, Settings{})
	for i := range b.N {
		if _, err := e.Task(b.Context(), env.Draw{Split: env.Train, Seed: 1, Index: i}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSolve(b *testing.B) {
	e := newHousehold(b, Settings{})
	task, err := e.Task(b.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.NoError(b, err)
	for range b.N {
		if _, err := e.Solve(b.Context(), env.State(task.Spec)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	e := newHousehold(b, Settings{})
	task, err := e.Task(b.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.NoError(b, err)
	for range b.N {
		if _, _, err := e.Step(b.Context(), env.State(task.Spec), "look"); err != nil {
			b.Fatal(err)
		}
	}
}
