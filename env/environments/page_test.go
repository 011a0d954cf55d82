package environments

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/code"
	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

var update = flag.Bool("update", false, "rewrite the episodes of docs/environments.md")

const page = "../../docs/environments.md"

// The page shows one episode of each environment of questions, as its teacher writes it.
func TestEpisodesOfThePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"question": "Half of what number is 3x?", "answer": "6x"}`), 0o600))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
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
		before, rest, found := strings.Cut(string(text), "<!-- episode of "+d.Name+" -->\n````text\n")
		require.True(t, found, "%s shows no episode of %s", page, d.Name)
		shown, after, _ := strings.Cut(rest, "\n````\n")
		if *update {
			shown = episode
			text = []byte(before + "<!-- episode of " + d.Name + " -->\n````text\n" + episode + "\n````\n" + after)
		}
		require.Equal(t, shown, episode, "run: go test ./env/environments -update")
	}
	if *update {
		require.NoError(t, os.WriteFile(page, text, 0o644))
	}
}
