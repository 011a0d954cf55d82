package recipes

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// printed is one line of testdata/papers.tsv: a setting that a paper prints for some presets.
type printed struct{ presets, setting, value, place string }

func printedSettings(t *testing.T) []printed {
	text, err := os.ReadFile(filepath.Join("testdata", "papers.tsv"))
	require.NoError(t, err)
	var out []printed
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		require.Len(t, f, 4, line)
		out = append(out, printed{f[0], f[1], f[2], f[3]})
	}
	return out
}

// holds reports whether the line names the preset.
func (p printed) holds(t *testing.T, preset string) (found bool) {
	for _, pattern := range strings.Fields(p.presets) {
		pattern, excluded := strings.CutPrefix(pattern, "!")
		matches, err := path.Match(pattern, preset)
		require.NoError(t, err)
		if matches && excluded {
			return false
		}
		found = found || matches
	}
	return found
}

// Presets have the settings that their papers print. Each preset of a paper's task has as many updates of one rollout
// as the paper, or updates of as many rows where rows are turns.
func TestPresetsHoldWhatPapersPrint(t *testing.T) {
	lines, used := printedSettings(t), map[printed]bool{}
	for _, name := range Presets() {
		r := resolved(t, name)
		values := map[string]string{"updates": strconv.Itoa(updates(&r.Recipe))}
		fields, err := List(r.JSON)
		require.NoError(t, err)
		for _, f := range fields {
			values[f.Path] = Plain(f.Value)
		}
		cut := r.Recipe.Environment.Name == Calc // its task is of no paper
		for _, p := range lines {
			if !p.holds(t, strings.TrimPrefix(name, presetFolder)) {
				continue
			}
			used[p] = true
			cut = cut || p.setting == "updates" || p.setting == "optimizer.minibatch_rows"
			require.Equal(t, numeric(p.value), numeric(values[p.setting]), "%s of %s (%s)", p.setting, name, p.place)
		}
		require.True(t, cut, "no paper says how often %s updates", name)
	}
	for _, p := range lines {
		require.True(t, used[p], "no preset has %s %s", p.setting, p.presets)
	}
}

// updates is the number of optimiser steps on a full batch, where rows are trajectories.
func updates(r *Recipe) int {
	rows, most := r.Rollout.Prompts*kept(r.Resample, r.Rollout.SamplesPerPrompt), r.MinibatchRows()
	if most == 0 {
		return r.Optimizer.Minibatches
	}
	return (rows + most - 1) / most * r.Optimizer.Epochs
}

// numeric is a value as a number where it is one, so that 1e-6 is 0.000001.
func numeric(value string) any {
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		return n
	}
	return value
}
