package shop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
)

// story plays actions and writes down what was shown and done.
func story(t *testing.T, e *Shop, task env.Task, actions []string, lay func(page string) string) string {
	words, err := e.Instruction(task)
	require.NoError(t, err)
	state, seen, err := e.Reset(t.Context(), task)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString(words + "\n")
	for _, action := range actions {
		text, ok := seen.Text()
		require.True(t, ok)
		b.WriteString("\n" + lay(text) + "\n> " + action + "\n")
		next, step, err := e.Step(t.Context(), state, action)
		require.NoError(t, err)
		state, seen = next, step.Observation
	}
	text, _ := seen.Text()
	b.WriteString("\n" + lay(text) + "\n")
	return b.String()
}

// Every page, in the words that a policy reads, with an action that the shop does not accept.
func TestPages(t *testing.T) {
	e := newShop(t, Settings{Products: 1000, Results: 3, Marks: true})
	task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: 1})
	require.NoError(t, err)
	w, err := e.readTask(task)
	require.NoError(t, err)
	p := e.catalogue.byID[w.Goal.Product]
	actions := []string{"click[search]", "search[" + p.title() + "]", "click[next >]", "click[< prev]",
		"click[red button]", "click[" + p.id + "]", "click[description]", "click[< prev]", "click[features]",
		"click[< prev]", "click[reviews]", "click[< prev]", click(p.options[0].values[1]),
		click(p.options[0].values[0]), "click[back to search]",
		"search[qqq]", "search[" + p.title() + "]", "click[" + p.id + "]", "click[buy now]"}
	plain := newShop(t, Settings{Products: 1000, Results: 3})
	golden.Check(t, "pages.txt", story(t, e, task, actions[:14], strings.Clone)+"\n"+
		story(t, plain, retimed(t, task, 30), actions, strings.Clone), *update)
}

// retimed changes the limit of turns of a task.
func retimed(t *testing.T, task env.Task, limit int) env.Task {
	e := newShop(t, Settings{Products: 1000})
	w, err := e.readTask(task)
	require.NoError(t, err)
	w.Limit = limit
	task.Spec = string(w.encode())
	return task
}

const (
	docBegin = "<!-- env/shop writes this episode -->\n```text\n"
	docEnd   = "```\n<!-- end -->"
)

// docs/environments.md shows an episode of the full-size shop: what the expert does with a held-out task.
func TestTheEpisodeInTheDocumentation(t *testing.T) {
	e := newShop(t, Settings{Results: 3})
	task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: 3})
	require.NoError(t, err)
	plan, err := e.Solve(t.Context(), env.State(task.Spec))
	require.NoError(t, err)
	path := filepath.Join("..", "..", "docs", "environments.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), docBegin)
	require.True(t, found)
	shown, after, found := strings.Cut(rest, docEnd)
	require.True(t, found)
	want := story(t, e, task, plan, lines)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+docBegin+want+docEnd+after), 0o644))
		return
	}
	require.Equal(t, want, shown, "docs/environments.md is stale; run go test ./env/shop -update")
}
