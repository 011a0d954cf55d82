package recipes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const formSet = "warm_start.demonstrations={form: true}"

// A recipe clones the form where its policy answers questions with calls of python.
func TestFormOfDemonstrations(t *testing.T) {
	for _, set := range [][]string{{}, {"rollout.protocol=hermes"}} {
		r := resolved(t, "quickstart", append(set, formSet)...)
		require.True(t, r.Recipe.Forms())
		require.True(t, r.Recipe.Needs().Initial)
		again, err := ParseCommitted("f", r.JSON, nil)
		require.NoError(t, err)
		require.True(t, again.Forms())
	}
	plain := resolved(t, "quickstart")
	require.False(t, plain.Recipe.Needs().Initial)
	none := resolved(t, "quickstart", formSet, "warm_start.steps=0", "warm_start.optimizer.warmup_steps=0")
	require.False(t, none.Recipe.Needs().Initial, "nothing is cloned")
	run := resolved(t, "quickstart", "warm_start.demonstrations={run: earlier}")
	require.NotContains(t, string(run.JSON), "form", "a recipe without the field keeps its digest")
}

func TestFormOfDemonstrationsRefuses(t *testing.T) {
	file := "file: /f.jsonl, sha256: '" + strings.Repeat("0", 64) + "'"
	for name, c := range map[string]struct{ recipe, set, want string }{
		"a file too":   {"quickstart", "warm_start.demonstrations={form: true, " + file + "}", "name one of the three"},
		"a run too":    {"quickstart", "warm_start.demonstrations={form: true, run: r}", "name one of the three"},
		"all of a run": {"quickstart", "warm_start.demonstrations={form: true, all: true}", "name one of the three"},
		"nothing":      {"quickstart", "warm_start.demonstrations={}", "must name either file or run, or form"},
		"actions":      {"household", formSet, "form has no place in a recipe of alfworld"},
		"no python": {"searchqa", formSet, "form wants rollout.tools python and a rollout.protocol that calls it, " +
			"such as rstar2 or hermes; got protocol prs and tools search"},
		"no number": {"quickstart", "warm_start.demonstrations={form: 3}", "warm_start.demonstrations.form"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Resolve(c.recipe, "", []string{c.set}, nil, nil)
			require.ErrorContains(t, err, "warm_start.demonstrations")
			require.ErrorContains(t, err, c.want)
		})
	}
}
