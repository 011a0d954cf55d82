package experiment

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/recipes"
)

const example = `name: roc
question: does RoC lower the share of failed calls?
recipe: quickstart
set:
  evaluation.every: 10
arms:
  grpo:
    set: {resample.vspo: null, resample.roc: null}
  roc:
    set:
      resample.vspo: null
  file: {recipe: own.yaml}
grid:
  optimizer.lr: [0.0003, 0.0006]
seeds: [1, 7]
outcomes:
- success
- failed_calls
- {name: collapsed, of: train_success, below: 0.1}
- name: longest
  sql: select step, max(turns) as value from rewards group by 1
  reduce: max
comparisons:
- {arm: roc, against: grpo}
- {arm: file, against: grpo, outcomes: [success]}
budget: {axis: tokens}
parallel: 2
stop:
  at: [10, 20]
  halve: {by: success}
  collapse: {of: collapsed, below: 0.5}
`

const own = "extends: quickstart\nname: own\nsteps: 5\n"

func parsed(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("roc.yaml", []byte(text))
	require.NoError(t, err)
	return f
}

func TestParse(t *testing.T) {
	f := parsed(t, example)
	require.Equal(t, []Arm{
		{"grpo", "quickstart", []string{"evaluation.every=10", "resample.vspo=null", "resample.roc=null"}},
		{"roc", "quickstart", []string{"evaluation.every=10", "resample.vspo=null"}},
		{"file", "own.yaml", []string{"evaluation.every=10"}},
	}, f.Arms)
	require.Equal(t, []point{{"optimizer.lr=0.0003", []string{"optimizer.lr=0.0003"}},
		{"optimizer.lr=0.0006", []string{"optimizer.lr=0.0006"}}}, f.Points)
	require.Equal(t, []string{"success", "failed_calls", "collapsed", "longest"}, f.Comparisons[0].Outcomes)
	require.Equal(t, "tail", f.Outcomes[2].Reduce)
	require.Equal(t, "train/success", f.Outcomes[2].Metric)
	require.InDelta(t, 0.5, f.Stop.Keep, 0)
	require.Equal(t, []int{10, 20, 0}, f.Holds())
	require.Equal(t, []string{"own.yaml"}, f.Recipes())

	short := parsed(t, "name: x\nrecipe: quickstart\nseeds: 3\narms: {a: , b: {set: {steps: 5}}}\n")
	require.Equal(t, []uint64{1, 2, 3}, short.Seeds)
	require.Equal(t, []comparison{{"b", "a", []string{"success", "auc"}}}, short.Comparisons)
	require.Len(t, short.Points, 1)
}

// Values of settings are written on one line, as recipes take them.
func TestSettingsAreOneLine(t *testing.T) {
	f := parsed(t, `name: x
seeds: 1
arms:
  a:
    recipe: quickstart
    set:
      loss:  # a comment
        name: gspo
        clip_low: 0.03
      environment.level_shares: {2: 0.5, 3: 0.5}
      description: |
        two
        lines
`)
	require.Equal(t, []string{"loss={name: gspo, clip_low: 0.03}", "environment.level_shares={2: 0.5, 3: 0.5}",
		`description="two\nlines\n"`}, f.Arms[0].Set)
}

func TestFaultsOfFiles(t *testing.T) {
	const base = "name: x\nrecipe: quickstart\nseeds: 2\narms: {a: , b: }\n"
	for _, c := range [][2]string{
		{"", "x.yaml:1: the file is empty"},
		{"- a", "x.yaml:1: must be a mapping"},
		{"name: [", "x.yaml:1: line 1: did not find expected node content"},
		{"name: X\nseeds: 1",
			`x.yaml:1: name: must be lower-case letters, digits, dots, dashes and underscores, got "X"`},
		{base + "sedes: 3", "x.yaml:5: sedes: is no field here; did you mean seeds?"},
		{base + "name: y", "x.yaml:5: name: is there twice"},
		{base + "parallel: two", "x.yaml:5: parallel: must be a whole number, got two"},
		{base + "parallel: 0", "x.yaml:5: parallel: must be ≥ 1, got 0"},
		{base + "program: that", "x.yaml:5: program: must be any or this, got that"},
		{base + "grid: {steps: 5}", "x.yaml:5: grid.steps: must be a list of values"},
		{base + "outcomes: succes", "x.yaml:5: outcomes: must be a list"},
		{base + "outcomes:\n- name: y\n  reduce: last",
			"x.yaml:6: outcomes[0]: give sql, which returns the columns step and value, or of: another outcome"},
		{base + "outcomes:\n- {name: y, of: kl, reduce: med}", "x.yaml:6: outcomes[0].reduce: must be one of auc, " +
			`first, gain, last, max, mean, min, sum, tail, got "med"`},
		{base + "comparisons:\n- arm: a\n  against: c", `x.yaml:7: comparisons[0].against: there is no arm "c"`},
		{base + "comparisons:\n- {arm: a, against: a}", "x.yaml:6: comparisons[0]: compares a with itself"},
		{base + "budget: {axis: dollars}",
			`x.yaml:5: budget.axis: must be one of steps, tokens, calls, updates, seconds, got "dollars"`},
		{base + "stop: {at: [5]}", "x.yaml:5: stop: give at, and halve or collapse"},
		{base + "stop: {at: [5, 3], halve: {by: auc}}", "x.yaml:5: stop.at: must be steps ≥ 1 that grow, got [5 3]"},
		{base + "stop:\n  at: [5]\n  halve:\n    by: entropy",
			"x.yaml:8: stop.halve.by: entropy is not among the experiment's outcomes"},
		{"name: x\nrecipe: quickstart\nseeds: 600",
			"x.yaml:3: seeds: make 600 trials of 1 arms at 1 points; at most 500 can be compared"},
		{"name: x\nrecipe: quickstart\nseeds: [1, 1]", "x.yaml:3: seeds: 1 is there twice"},
		{"name: x\nseeds: 1\narms: {a: }", "x.yaml:3: arms.a: name a recipe, for all arms or for this one"},
	} {
		_, err := Parse("x.yaml", []byte(c[0]))
		require.Error(t, err, c[0])
		require.Contains(t, strings.Split(err.Error(), "\n"), c[1], c[0])
	}
}

func TestExpand(t *testing.T) {
	f := parsed(t, example)
	trials, err := f.Expand(Sources{"own.yaml": own}, "program")
	require.NoError(t, err)
	require.Len(t, trials, 12)
	first := trials[0]
	require.Equal(t, "grpo optimizer.lr=0.0003", first.Arm)
	require.Equal(t, "trial-quickstart-s1-"+first.Resolved.Digest[:10], first.Run)
	require.Equal(t, []string{"evaluation.every=10", "resample.vspo=null", "resample.roc=null",
		"optimizer.lr=0.0003"}, first.Set)
	require.Equal(t, "own", trials[2].Resolved.Recipe.Name)
	require.EqualValues(t, 7, trials[6].Resolved.Recipe.Seed)

	// Another experiment with the same recipe has the same trial, whatever the arm is called.
	other := parsed(t, "name: y\nseeds: [7, 1]\narms: {plain: {recipe: quickstart, set: "+
		"{resample: {vspo: null, roc: null}, evaluation.every: 10, optimizer.lr: 0.0003}}}")
	shared, err := other.Expand(nil, "another program")
	require.NoError(t, err)
	require.Equal(t, first.Run, shared[1].Run)
	other.Program = true
	own, err := other.Expand(nil, "another program")
	require.NoError(t, err)
	require.NotEqual(t, first.Run, own[1].Run)
}

func TestFaultsOfArms(t *testing.T) {
	for _, c := range [][2]string{
		{"name: x\nseeds: 2\narms:\n  a: {recipe: quickstart}\n  b: {recipe: quickstart, set: {stepz: 3}}",
			"x.yaml:5: arms.b: --set stepz=3: "},
		{"name: x\nseeds: 2\narms:\n  a: {recipe: quickstart}\n  b: {recipe: quickstart}",
			"x.yaml:5: arms.b: b is the same recipe as a"},
		{"name: x\nseeds: 1\narms:\n  a: {recipe: openai-offline}",
			"x.yaml:4: arms.a: environment.name: openai holds imported trajectories"},
		{"name: x\nseeds: 1\narms:\n  a: {recipe: nosuch}",
			"x.yaml:4: arms.a: recipe nosuch: no such built-in recipe"},
		{"name: x\nseeds: 1\nrecipe: quickstart\nset: {evaluation.every: 4}\nstop:\n  halve: {by: success}\n" +
			"  at: [8, 10]",
			"x.yaml:7: stop.at: arm quickstart is not evaluated after step 10, which success reads"},
	} {
		f, err := Parse("x.yaml", []byte(c[0]))
		require.NoError(t, err, c[0])
		_, err = f.Expand(nil, "")
		var problems recipes.Problems
		require.True(t, errors.As(err, &problems), c[0])
		require.True(t, slices.ContainsFunc(problems, func(p recipes.Problem) bool {
			return strings.HasPrefix(p.Error(), c[1])
		}), "%s: %v", c[0], err)
	}
}
