package searchqa

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

// small is a corpus of short documents, as the recipe searchqa has it.
var small = Settings{Name: "search_qa", Documents: 1200, Brief: true, Results: 3}

func open(t *testing.T, s Settings) *Environment {
	t.Helper()
	e, err := New(s)
	require.NoError(t, err)
	return e
}

func TestContract(t *testing.T) {
	all := Settings{Name: "search_qa", Train: familyNames(), Evaluate: familyNames()}
	for _, s := range []Settings{{Name: "search_qa"}, small, all} {
		envtest.Run(t, open(t, s), envtest.Case{Tasks: 100, Turns: 2, Nonsense: []string{"", " \t", "...", "the"}})
	}
}

// The full-size corpus has at least 5,000 documents of all kinds. The same settings make the same corpus.
func TestCorpus(t *testing.T) {
	for _, s := range []shape{{documents: fullSize}, {documents: 1200, brief: true}, {documents: fewestDocuments},
		{documents: mostDocuments, brief: true}} {
		c := build(s)
		require.Len(t, c.entities, s.documents)
		again := build(s)
		require.Equal(t, c.entities, again.entities)
		for i := range c.entities {
			d := c.document(i)
			require.NotEmpty(t, d.Text, d.Title)
			require.NotContains(t, d.Title+d.Text, "\n")
			require.NotContains(t, d.Text, " | ")
		}
		for _, k := range []kind{person, city, river, country, company, work, note, listing} {
			require.NotEmpty(t, c.of[k], k)
		}
	}
	c := corpusOf(shape{documents: fullSize})
	require.GreaterOrEqual(t, len(c.entities), 5000)
	longest := 0
	for i := range c.entities {
		longest = max(longest, len(c.document(i).Text))
	}
	require.Greater(t, longest, 4*paperTokens, "no document is cut")
}

// The facts fit together: a city and its river are in one country, and nothing is older than its maker.
func TestFactsFitTogether(t *testing.T) {
	c := corpusOf(shape{documents: fullSize})
	for _, i := range c.of[city] {
		at := c.entities[i].links
		require.Equal(t, at[within], c.entities[at[lies]].links[within])
	}
	for _, i := range c.of[country] {
		if of, known := c.entities[i].links[capital]; known {
			require.Equal(t, i, c.entities[of].links[within])
		}
	}
	for _, i := range c.of[work] {
		require.Greater(t, c.entities[i].year, c.entities[c.entities[i].links[author]].year)
	}
	for _, i := range c.of[company] {
		require.Greater(t, c.entities[i].year, c.entities[c.entities[i].links[founder]].year)
	}
}

// No subject of a training question is one of a held-out question, for any family. Both splits have questions of every
// family, of every level, and such that ask for several items.
func TestSplits(t *testing.T) {
	c := corpusOf(shape{documents: fullSize})
	levels := map[int]bool{}
	for _, f := range families {
		levels[f.level] = true
		about := map[bool]map[string]bool{false: {}, true: {}}
		for _, held := range []bool{false, true} {
			of := c.questions(f, held)
			require.GreaterOrEqual(t, len(of), 5, f.name)
			for _, q := range of {
				for _, subject := range q.About {
					about[held][subject] = true
					require.Equal(t, held, heldOut(subject), "%s: %s", f.name, subject)
				}
			}
		}
		for subject := range about[true] {
			require.False(t, about[false][subject], "%s: %s is in both splits", f.name, subject)
		}
	}
	require.Len(t, levels, 3)
	e := open(t, Settings{Name: "search_qa"})
	types := map[string]int{}
	for _, task := range envtest.Take(t, e, env.Train, 3, 400) {
		types["train "+task.Type]++
	}
	for _, task := range envtest.Take(t, e, env.HeldOut, 3, 440) {
		types["held-out "+task.Type]++
	}
	require.Len(t, types, len(trained)+len(families)-len(long))
	for name, n := range types {
		require.GreaterOrEqual(t, n, 40, name)
	}
}

// seen runs a teacher's moves on the real library and returns everything that it was shown.
func seen(t *testing.T, e *Environment, task env.Task, l env.Lesson, rng *rand.Rand) (shown []string, answer string) {
	t.Helper()
	act := func(m env.Move) (env.Shown, error) {
		var given map[string]string
		switch {
		case m.Tool == "":
			answer = m.Answer
			return env.Shown{}, nil
		case m.Broken:
			return env.Shown{}, nil
		}
		require.NoError(t, json.Unmarshal([]byte(m.Arguments), &given))
		var text string
		if m.Tool == browseTool {
			d, ok, err := e.Document(t.Context(), given["document"])
			require.NoError(t, err)
			require.True(t, ok, "no document has the title %s", given["document"])
			text = d.Text
		} else {
			hits, err := e.Search(t.Context(), given["query"])
			require.NoError(t, err)
			for _, h := range hits {
				text += h.Title + ": " + h.Snippet + "\n"
			}
		}
		shown = append(shown, text)
		return env.Shown{OK: true, Text: text}, nil
	}
	require.NoError(t, e.Demonstrate(t.Context(), rng, task, l, act))
	return shown, answer
}

// The expert solves every question of every family by what the tools show: each fact that the answer needs is shown.
func TestTheExpertSolvesEveryQuestion(t *testing.T) {
	for _, s := range []Settings{{Name: "search_qa", Evaluate: familyNames()}, {Name: "search_qa", Documents: 1200,
		Brief: true, Results: 3, Evaluate: familyNames()}} {
		e := open(t, s)
		browsed := 0
		for _, task := range envtest.Take(t, e, env.HeldOut, 1, 360) {
			q, err := readTask(task)
			require.NoError(t, err)
			lesson := env.Lesson{Tools: []string{searchTool, browseTool}}
			shown, answer := seen(t, e, task, lesson, rand.New(rand.NewPCG(1, 1)))
			require.True(t, e.Right(task, answer), "%s: %q", task.Text, answer)
			browsed += len(shown) - len(q.Documents)
			text := strings.Join(shown, "\n")
			for _, read := range q.Reads {
				require.Contains(t, text, read, task.Text)
			}
			state, _, err := e.Reset(t.Context(), task)
			require.NoError(t, err)
			_, end, err := e.Step(t.Context(), state, answer)
			require.NoError(t, err)
			require.True(t, end.Success)
		}
		require.Equal(t, !s.Brief, browsed > 0, "short documents need no browsing, long ones do")
	}
}

// A share of the demonstrations is wrong, and no fault makes the teacher fail.
func TestFaultyDemonstrations(t *testing.T) {
	e := open(t, small)
	for _, share := range []float64{0, 0.5, 1} {
		right := 0
		const n = 400
		for i := range n {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			lesson := env.Lesson{Faulty: share, Tools: []string{searchTool}}
			task, err := e.Draw(rng, lesson)
			require.NoError(t, err)
			_, answer := seen(t, e, task, lesson, rng)
			require.NotEmpty(t, answer)
			if e.Right(task, answer) {
				right++
			}
		}
		t.Logf("of demonstrations with a fault in %g of them, %d of %d are right", share, right, n)
		require.InDelta(t, 1-0.9*share, float64(right)/n, 0.09)
	}
	_, err := e.Draw(rand.New(rand.NewPCG(1, 1)), env.Lesson{Faulty: 2})
	require.ErrorContains(t, err, "2 is not a chance")
}

// Golds are accepted in every form, and several items in every order.
func TestGolds(t *testing.T) {
	e := open(t, Settings{Name: "search_qa", Evaluate: []string{"works", "river_cities", "birth_river", "age"}})
	items := map[string]int{}
	for _, task := range envtest.Take(t, e, env.HeldOut, 1, 80) {
		golds := env.SplitGolds(task.Answer)
		require.GreaterOrEqual(t, len(golds), 2, task.Type)
		items[task.Type] = max(items[task.Type], len(golds))
		for _, gold := range golds {
			require.True(t, e.Right(task, " the "+strings.ToUpper(gold)+"."), gold)
		}
		require.False(t, e.Right(task, golds[0]+" and more"))
		require.False(t, e.Right(task, ""))
	}
	require.Equal(t, 4, items["works"], "two orders, with and without a word between the items")
	require.Equal(t, 12, items["river_cities"])
}

// A search shows the best document first and equal scores in one order, in every process: a second index of the same
// documents gives the same results.
func TestSearch(t *testing.T) {
	e := open(t, Settings{Name: "search_qa", Results: 10})
	other, err := newIndex(e.corpus)
	require.NoError(t, err)
	queries := []string{"Ada", "city on the river", "born in", "prize strike fair", "novel by", "plaque century later",
		"who wrote letters? + - && || ! ( ) { } [ ] ^ \" ~ * ? : \\ /", "title:Ada", "\x00\xff", "日本語", "the of and",
		strings.Repeat("river city ", 5000), strings.Repeat("é", 3000)}
	for _, i := range []int{0, 100, 1000, 2000, 3000} {
		queries = append(queries, e.corpus.entities[i].title)
	}
	x, err := e.corpus.find()
	require.NoError(t, err)
	for _, q := range queries {
		hits, err := e.Search(t.Context(), q)
		require.NoError(t, err, q)
		require.LessOrEqual(t, len(hits), 10)
		for _, h := range hits {
			require.LessOrEqual(t, len(h.Snippet), snippetBytes)
			_, ok, err := e.Document(t.Context(), h.Title)
			require.NoError(t, err)
			require.True(t, ok)
		}
		first, err := x.search(t.Context(), short(q, queryBytes), 10)
		require.NoError(t, err)
		second, err := other.search(t.Context(), short(q, queryBytes), 10)
		require.NoError(t, err)
		require.Equal(t, first, second, q)
	}
	for _, k := range []kind{person, city, river, country, company, work} {
		for _, i := range e.corpus.of[k][:4] {
			hits, err := e.Search(t.Context(), e.corpus.entities[i].title)
			require.NoError(t, err)
			require.Equal(t, e.corpus.entities[i].title, hits[0].Title)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Search(ended, "Ada")
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = e.Document(ended, "Ada")
	require.ErrorIs(t, err, context.Canceled)
	_, ok, err := e.Document(t.Context(), "no such document")
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, other.bleve.Close())
}

func TestSettings(t *testing.T) {
	for message, s := range map[string]Settings{
		"documents must be 200 to 20000, got 7":                {Documents: 7},
		"results must be 1 to 10, got 11":                      {Results: 11},
		"page_tokens must be 16 to 6000, got 1":                {Page: 1},
		`train: there is no family "x"; there are birthplace,`: {Train: []string{"x"}},
		"evaluate names family older twice":                    {Evaluate: []string{"older", "older"}},
	} {
		_, err := New(s)
		require.ErrorContains(t, err, message)
	}
}

func TestTasksOfOthersAreRefused(t *testing.T) {
	e := open(t, small)
	task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut})
	require.NoError(t, err)
	for _, change := range []func(*env.Task){
		func(t *env.Task) { t.ID = "searchqa-0" },
		func(t *env.Task) { t.Spec = strings.Replace(t.Spec, `"golds":["`, `"golds":["x`, 1) },
		func(t *env.Task) { t.Spec = "{" },
	} {
		other := task
		change(&other)
		_, _, err := e.Reset(t.Context(), other)
		require.ErrorContains(t, err, "read question")
	}
}

// The parts of names and the words around them are tokens of their own, each once.
func TestFixedStrings(t *testing.T) {
	all := fixed()
	require.True(t, slices.IsSorted(all))
	require.Len(t, slices.Compact(slices.Clone(all)), len(all))
}
