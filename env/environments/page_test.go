package environments

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/code"
	"github.com/ropewalk/ropewalk/env/household"
	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/env/sokoban"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

var update = flag.Bool("update", false, "rewrite the episodes of docs/environments.md")

const page = "../../docs/environments.md"

// replaced puts a text into the block of the page that a comment names, or requires that the block holds it.
func replaced(t *testing.T, name, fence, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	begin, end := "<!-- "+name+" -->\n"+fence+"\n", "\n"+strings.TrimRight(fence, "abcdefghijklmnopqrstuvwxyz")+"\n"
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has no block of %s", page, name)
	shown, after, found := strings.Cut(rest, end)
	require.True(t, found, name)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+want+end+after), 0o644))
		return
	}
	require.Equal(t, want, shown, "run: go test ./env/environments -update")
}

// The page shows one episode of each environment of questions, as its teacher writes it.
func TestEpisodesOfThePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"question": "Half of what number is 3x?", "answer": "6x"}`), 0o600))
	for d, settings := range map[*env.Declaration]env.Settings{
		&math.Plain:       {"train": file, "max_mb": 1, "max_row_kb": 1},
		&code.Declaration: {},
	} {
		e, err := d.Open(env.Options{Settings: settings, MaxTurns: 1})
		require.NoError(t, err)
		task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, PerStep: 1})
		require.NoError(t, err)
		p, err := protocol.Named(d.Protocol)
		require.NoError(t, err)
		episode := p.Context(protocol.View{Task: task.Text})
		require.NoError(t, e.(env.Teacher).Demonstrate(t.Context(), seed.Rand("page"), task, env.Lesson{},
			func(m env.Move) (env.Shown, error) {
				response, ok := p.Write(m)
				if ok {
					episode += "⟦" + response + "⟧"
				}
				return env.Shown{}, nil
			}))
		replaced(t, "episode of "+d.Name, "````text", episode)
	}
}

// The page shows one episode of each world of actions that has full size: what the expert does with a held-out task, as
// a person reads it.
func TestExpertsOfThePage(t *testing.T) {
	for _, c := range []struct {
		declared env.Declaration
		turns    int
		index    int
	}{{sokoban.Declaration, sokoban.PaperTurns, 2}, {household.Declaration, household.PaperTurns, 2}} {
		e, err := c.declared.Open(env.Options{Settings: defaults(c.declared), MaxTurns: c.turns})
		require.NoError(t, err)
		task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: c.index})
		require.NoError(t, err)
		words, err := e.Instruction(task)
		require.NoError(t, err)
		state, seen, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		plan, err := e.(env.Expert).Solve(t.Context(), state)
		require.NoError(t, err)
		var b strings.Builder
		b.WriteString(words + "\n")
		show := func() {
			text, ok := seen.Text()
			require.True(t, ok)
			b.WriteString("\n" + c.declared.Lay("", text) + "\n")
		}
		show()
		var last env.Transition
		for _, action := range plan {
			state, last, err = e.Step(t.Context(), state, action)
			require.NoError(t, err)
			seen = last.Observation
			b.WriteString("> " + action + "\n")
			show()
		}
		require.True(t, last.Success)
		fmt.Fprintf(&b, "\nsolved in %d turns; the last one pays %.4g", len(plan), last.Reward)
		replaced(t, "episode of "+c.declared.Name, "```text", b.String())
	}
}

// The page lists the shapes of public sets that are recognised, and the functions of mappings.
func TestShapesOfThePage(t *testing.T) {
	var b strings.Builder
	b.WriteString("| set | environments | fields | |\n| --- | --- | --- | --- |\n")
	questions := "`math`, `chat`, `qa`"
	row := func(s dataset.Shape, of string) {
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(s.Columns)) {
			column := strings.NewReplacer("|", "\\|", "\n", "\\n").Replace(s.Columns[name])
			fields = append(fields, name+": `"+column+"`")
		}
		if fields == nil {
			fields = []string{"`" + strings.Join(s.Needs, "`, `") + "`"}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.Name, of, strings.Join(fields, ", "), s.Note)
	}
	one := math.Shapes["math"]
	for _, s := range math.Shapes["qa"] {
		if of := questions; slices.ContainsFunc(one, func(o dataset.Shape) bool { return o.Name == s.Name }) {
			row(s, of)
		} else {
			row(s, "`qa`")
		}
	}
	for _, s := range math.Shapes["functions"] {
		row(s, "`functions`")
	}
	for _, s := range code.Shapes {
		row(s, "`code`")
	}
	b.WriteString("\n| function | gives |\n| --- | --- |\n")
	for _, f := range dataset.Functions {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, f.Doc)
	}
	text, err := os.ReadFile("../../docs/data.md")
	require.NoError(t, err)
	const begin, end = "<!-- shapes -->\n", "<!-- end of shapes -->"
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	shown, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile("../../docs/data.md", []byte(before+begin+b.String()+end+after), 0o644))
		return
	}
	require.Equal(t, b.String(), shown, "run: go test ./env/environments -update")
}

// shortExample bounds the lines of the page's whole environment.
const shortExample = 60

// The page shows a whole environment in a few lines: a file that the tests compile and run.
func TestTheShortExampleIsOnThePage(t *testing.T) {
	text, err := os.ReadFile("guess_test.go")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), shortExample)
	replaced(t, "environment of one file", "```go", strings.TrimSuffix(string(text), "\n"))
}
