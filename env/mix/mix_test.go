package mix

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/env/code"
	"github.com/ropewalk/ropewalk/env/household"
	"github.com/ropewalk/ropewalk/env/searchqa"
	"github.com/ropewalk/ropewalk/env/shop"
	"github.com/ropewalk/ropewalk/env/sokoban"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

func rooms(label string, weight float64, size int) Part {
	return Part{Label: label, Weight: weight, Declaration: sokoban.Declaration, Settings: env.Settings{
		"size": size, "boxes": 1, "min_moves": 2, "max_moves": 12, "pays": "gym"}}
}

func sums(label string, weight float64) Part {
	return Part{Label: label, Weight: weight, Declaration: calc.Declaration,
		LevelShares: map[string]float64{"2": 0.5, "3": 0.5}}
}

func openMix(t testing.TB, parts ...Part) env.Environment {
	t.Helper()
	d, fault := Combine(parts)
	require.Empty(t, fault)
	e, err := d.Open(env.Options{Settings: env.Settings{}, MaxTurns: 15})
	require.NoError(t, err)
	return e
}

// A mix of worlds fulfils the contract of an interactive environment, its expert included.
func TestMixOfWorldsConforms(t *testing.T) {
	e := openMix(t, rooms("small", 1, 6), rooms("large", 2, 7))
	envtest.Run(t, e, envtest.Case{Tasks: 24, Turns: 6, Nonsense: []string{"", "jump"}, Solved: 1})
	_, teaches := e.(env.Teacher)
	require.False(t, teaches)
	task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.NoError(t, err)
	state, _, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	plan, err := e.(env.Expert).Solve(t.Context(), state)
	require.NoError(t, err)
	action, err := e.(env.Misleader).Mislead(t.Context(), state, 1)
	require.NoError(t, err)
	require.Equal(t, plan[0], action, "rooms list their actions, so nothing misleads in them")
}

// Of different worlds, each episode is played in the world of its task.
func TestMixOfDifferentWorlds(t *testing.T) {
	e := openMix(t, Part{Label: "alfworld", Weight: 1, Declaration: household.Declaration,
		Settings: defaults(household.Declaration)}, rooms("sokoban", 1, 6))
	words := map[string]string{}
	for _, task := range envtest.Take(t, e, env.Train, 3, 12) {
		said, err := e.Instruction(task)
		require.NoError(t, err)
		state, seen, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		require.True(t, slices.Contains([]string{"alfworld", "sokoban"}, task.Part))
		require.Equal(t, task.Part == "sokoban", slices.Contains(seen.Admissible, "push up") ||
			slices.Contains(seen.Admissible, "up"), "%s: %v", task.Part, seen.Admissible)
		if before, ok := words[task.Part]; ok && task.Part == "sokoban" {
			require.Equal(t, before, said)
		}
		words[task.Part] = said
		plan, err := e.(env.Expert).Solve(t.Context(), state)
		require.NoError(t, err)
		require.NotEmpty(t, plan)
	}
	require.Len(t, words, 2)
	_, _, err := e.Step(t.Context(), env.State("shop:{}"), "up")
	require.ErrorContains(t, err, `no part "shop"`)
}

// A mix of questions fulfils the contract too, and its teacher demonstrates tasks of every part.
func TestMixOfQuestionsConforms(t *testing.T) {
	e := openMix(t, sums("calc", 3), sums("hard", 1))
	envtest.Run(t, e, envtest.Case{Tasks: 12, Turns: 2, Nonsense: []string{"", "fifteen"}})
	teacher := e.(env.Teacher)
	counts := map[string]int{}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		task, err := teacher.Draw(rng, env.Lesson{Levels: []int{2}})
		require.NoError(t, err)
		counts[task.Part]++
		require.True(t, e.(env.Marker).Right(task, task.Answer))
		require.False(t, e.(env.Marker).Right(task, "no answer"))
	}
	require.InDelta(t, 300, counts["calc"], 50)
	require.Equal(t, 400, counts["calc"]+counts["hard"])
	answered := 0
	task, err := teacher.Draw(rng, env.Lesson{Levels: []int{2}})
	require.NoError(t, err)
	require.NoError(t, teacher.Demonstrate(t.Context(), rng, task, env.Lesson{}, func(m env.Move) (env.Shown, error) {
		if !m.IsCall() {
			answered++
		}
		return env.Shown{OK: true, Text: task.Answer}, nil
	}))
	require.Equal(t, 1, answered)
}

// A mix has the documents of the part that has some.
func TestMixHasALibrary(t *testing.T) {
	e := openMix(t, Part{Label: "search", Weight: 1, Declaration: searchqa.SearchQA,
		Settings: env.Settings{"documents": 200, "brief": true}}, Part{Label: "again", Weight: 1,
		Declaration: withoutDocuments(searchqa.SearchQA), Settings: env.Settings{"documents": 200, "brief": true}})
	task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.NoError(t, err)
	hits, err := e.(env.Library).Search(t.Context(), task.Text)
	require.NoError(t, err)
	require.NotEmpty(t, hits)
}

// withoutDocuments is an environment of questions with golds and without documents.
func withoutDocuments(d env.Declaration) env.Declaration {
	d.Tools, d.MoreTools = nil, nil
	inner := d.Open
	d.Open = func(o env.Options) (env.Environment, error) {
		e, err := inner(o)
		return struct{ env.Environment }{e}, err
	}
	return d
}

// The places of the parts are shares of all places, at every length, and each part sees consecutive places.
func TestShares(t *testing.T) {
	for _, weights := range [][]float64{{1, 1}, {3, 1}, {0.001, 1000}, {1, 2, 3}, {5, 0.5, 1, 1, 7}, {1, 1, 1e-3}} {
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		for runSeed := range uint64(20) {
			s := divide(weights, runSeed)
			counts := make([]int, len(weights))
			for place := range 3000 {
				part, index := s.at(place)
				require.Equal(t, counts[part], index, "%v: place %d", weights, place)
				counts[part]++
				for i, n := range counts {
					require.LessOrEqual(t, math.Abs(float64(n)-float64(place+1)*weights[i]/sum), float64(i+2),
						"%v: part %d after %d places", weights, i, place+1)
				}
			}
			part, index := s.at(1 << 40) // far away, without the places before it
			require.InEpsilon(t, float64(1<<40)*weights[part]/sum, float64(index)+1, 1e-2)
		}
	}
}

// The part of a draw follows from seed, step and index alone, and seeds differ in it.
func TestPartOfADraw(t *testing.T) {
	e := openMix(t, sums("a", 1), sums("b", 2))
	parts := func(runSeed uint64, split env.Split) (out []string) {
		for place := range 30 {
			task, err := e.Task(t.Context(), env.Draw{Split: split, Seed: runSeed, Step: 1 + place/5, Index: place % 5,
				PerStep: 5})
			require.NoError(t, err)
			out = append(out, task.Part)
		}
		return out
	}
	require.Equal(t, parts(1, env.Train), parts(1, env.Train))
	require.Equal(t, parts(1, env.HeldOut), parts(2, env.HeldOut))
	differs := false
	for s := range uint64(8) {
		differs = differs || !slices.Equal(parts(1, env.Train), parts(s, env.Train))
	}
	require.True(t, differs)
	require.Equal(t, []int{10, 20}, HeldOut([]Part{sums("a", 1), sums("b", 2)}, 30))
}

func TestPartsThatDoNotFit(t *testing.T) {
	of := func(d env.Declaration) Part { return Part{Label: d.Name, Weight: 1, Declaration: d} }
	for name, c := range map[string]struct {
		parts []Part
		fault string
	}{
		"one":        {[]Part{sums("a", 1)}, "at least two parts, got 1"},
		"same label": {[]Part{sums("a", 1), sums("a", 1)}, "two parts are called a"},
		"a mix":      {[]Part{sums("a", 1), of(Declaration)}, "part mix is a mix itself"},
		"imported": {[]Part{sums("a", 1), of(env.Declaration{Name: "b", Imported: true})},
			"part b supplies no tasks"},
		"kinds": {[]Part{sums("a", 1), rooms("b", 1, 6)},
			"part a asks questions, and part b is played by actions"},
		"golds":         {[]Part{sums("a", 1), of(searchqa.SearchQA)}, "compare answers differently"},
		"two libraries": {[]Part{of(searchqa.SearchQA), of(searchqa.DeepResearch)}, "both have documents"},
		"rewards":       {[]Part{sums("a", 1), of(code.Declaration)}, "no reward scores all of them: a: "},
	} {
		_, fault := Combine(c.parts)
		require.Contains(t, fault, c.fault, name)
	}
}

func TestCombinedDeclaration(t *testing.T) {
	d, fault := Combine([]Part{rooms("a", 1, 6), {Label: "b", Weight: 1, Declaration: shop.Declaration}})
	require.Empty(t, fault)
	require.True(t, d.Interactive && d.Demonstrated && !d.Sandboxed)
	require.Equal(t, "think_action", d.Protocol)
	strings := d.Strings()
	for i, s := range strings {
		require.NotContains(t, strings[:i], s)
	}
	for _, s := range slices.Concat(sokoban.Declaration.Strings(), shop.Declaration.Strings()) {
		require.Contains(t, strings, s)
	}
}

// defaults returns an environment's settings.
func defaults(d env.Declaration) env.Settings {
	out := env.Settings{}
	for _, s := range d.Settings {
		if !s.Quiet {
			panic("the environment has a setting that is not quiet: " + s.Name)
		}
	}
	return out
}
