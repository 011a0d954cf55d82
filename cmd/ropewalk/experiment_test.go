package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/experiment"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

const comparedFile = `name: compared
question: is it <b>faster</b>?
recipe: quickstart
set: {steps: 2}
arms:
  a: {set: {optimizer.lr: 0.001}}
  b:
  c: {set: {optimizer.lr: 0.002}}
seeds: 2
outcomes:
- success
- train_success
- valid
- failed_calls
- collapse
- {name: calls, sql: "select step, sum(tool_calls) as value from rewards group by 1", reduce: sum}
`

// ran runs a command without servers.
func ran(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

// comparedExperiment makes a record with the trials of arms a and b, and returns the experiment's file.
func comparedExperiment(t *testing.T) string {
	t.Helper()
	f, err := experiment.Parse("compared.yaml", []byte(comparedFile))
	require.NoError(t, err)
	trials, err := f.Expand(nil, "")
	require.NoError(t, err)
	objects := mem.New()
	for _, trial := range trials {
		if trial.Arm != "c" {
			recordtest.Train(t, objects, recordtest.Options{Run: trial.Run, Steps: 2, Seed: trial.Seed,
				Created: "2026-01-02T03:04:05Z"})
		}
	}
	home := t.TempDir()
	t.Setenv("ROPEWALK_HOME", home)
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "S3_ENDPOINT"} {
		t.Setenv(name, "")
	}
	recordtest.Unpack(t, objects, filepath.Join(home, "s3", "ropewalk"))
	file := filepath.Join(t.TempDir(), "compared.yaml")
	require.NoError(t, os.WriteFile(file, []byte(comparedFile), 0o600))
	return file
}

// The outcomes of trials are those that SQL reads from their records.
func TestAnExperimentIsShown(t *testing.T) {
	file := comparedExperiment(t)
	code, text, messages := ran(t, "experiment", "show", file, "--json")
	require.Equal(t, exitDone, code, messages)
	require.Empty(t, messages, "nothing is started")
	var r struct {
		Trials []struct {
			Run      string `json:"run_id"`
			Arm      string
			State    string
			Outcomes map[string]float64
			Cost     *experiment.Cost
		}
		Contrasts []experiment.Contrast
	}
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	require.Len(t, r.Trials, 6)
	require.Len(t, r.Contrasts, 12)
	require.Equal(t, "new", r.Trials[2].State, "c has no run")
	require.Empty(t, r.Trials[2].Outcomes)
	first := r.Trials[0]
	require.Equal(t, "done", first.State)
	for name, query := range map[string]string{
		"train_success": "select avg(success::int) from rewards where step = 2",
		"valid": "select avg(v) from (select step, avg((coalesce(parsed_calls, 0) > 0 or answered)::int) as v from " +
			"turns group by 1)",
		"calls": "select sum(tool_calls) from rewards",
		"success": "select avg(s) from (select problem_id, avg(success::int) as s from evaluations where not greedy " +
			"and step = 2 group by 1)",
	} {
		code, answer, messages := ran(t, "sql", query, "--run", first.Run, "--json")
		require.Equal(t, exitDone, code, messages)
		var out struct{ Rows [][]float64 }
		require.NoError(t, json.Unmarshal([]byte(answer), &out), answer)
		require.InDelta(t, out.Rows[0][0], first.Outcomes[name], 1e-9, name)
	}
	require.Positive(t, first.Cost.Tokens)
	require.Positive(t, first.Cost.Updates)

	code, text, messages = ran(t, "experiment", "show", file, "--axis", "calls")
	require.Equal(t, exitDone, code, messages)
	require.Contains(t, text, "b − a")
	require.Contains(t, text, "not resolved")
}

func TestAnExperimentsPage(t *testing.T) {
	file := comparedExperiment(t)
	page := filepath.Join(t.TempDir(), "page.html")
	code, _, messages := ran(t, "experiment", "report", file, "-o", page)
	require.Equal(t, exitDone, code, messages)
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(data)
	for _, part := range []string{"4 of 6", `<meta http-equiv="refresh"`, "is it &lt;b&gt;faster", "b − a",
		"optimizer.lr", `aria-label="train_success"`, "2 of 2"} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "<script")
	code, _, messages = ran(t, "experiment", "report", file, "-o", page)
	require.Equal(t, exitDone, code, messages)
	again, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, text, string(again), "equal data give equal bytes")

	drawing := filepath.Join(t.TempDir(), "curve.svg")
	code, _, messages = ran(t, "experiment", "report", file, "--figure", "curve-train_success", "-o", drawing)
	require.Equal(t, exitDone, code, messages)
	data, err = os.ReadFile(drawing)
	require.NoError(t, err)
	require.Contains(t, string(data), ">a (2 of 2)</text>", "the legend")
	var elements struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		Lines   []struct {
			Class string `xml:"class,attr"`
		} `xml:"svg>path"`
	}
	require.NoError(t, xml.Unmarshal(data, &elements))
	require.NotEmpty(t, elements.Lines)
	code, _, messages = ran(t, "experiment", "report", file, "--figure", "curve-none")
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, `--figure: no figure "curve-none" (there are: difference-`)
}

// A dry run starts nothing, and predicts from the trials that are done.
func TestAnExperimentIsPlanned(t *testing.T) {
	file := comparedExperiment(t)
	code, text, messages := ran(t, "experiment", "run", file, "--dry-run")
	require.Equal(t, exitDone, code, messages)
	require.Contains(t, text, "2 of 6 trials are left, 1 at once: about ")
	require.Equal(t, 4, strings.Count(text, "  of trial-quickstart-s1-"), "two trials take warm start and evaluation")
	code, text, _ = ran(t, "experiment", "run", file, "--dry-run", "--json")
	require.Equal(t, exitDone, code)
	var plan struct{ Trials []plannedTrial }
	require.NoError(t, json.Unmarshal([]byte(text), &plan))
	require.Equal(t, plan.Trials[0].WarmStart, plan.Trials[1].WarmStart)
	require.NotEqual(t, plan.Trials[0].WarmStart, plan.Trials[3].WarmStart, "another seed")
	require.NotEmpty(t, plan.Trials[0].Evaluation)
	require.Equal(t, plan.Trials[0].Evaluation, plan.Trials[1].Evaluation)
	require.NotEqual(t, plan.Trials[0].Evaluation, plan.Trials[3].Evaluation, "another seed")
	require.True(t, plan.Trials[2].Measured)
}

// The experiments of the source tree can run.
func TestExperimentFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(top, "experiments", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		o, err := openExperiment(file, "")
		require.NoError(t, err)
		require.Equal(t, strings.TrimSuffix(filepath.Base(file), ".yaml"), o.Name)
		require.NotEmpty(t, o.Question)
	}
}

func TestFaultsOfExperiments(t *testing.T) {
	file := comparedExperiment(t)
	write := func(text string) string {
		path := filepath.Join(filepath.Dir(file), "other.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, c := range []struct{ file, want string }{
		{"nosuch.yaml", "no experiment file nosuch.yaml"},
		{write("name: x\nseeds: 1\nrecipe: own.yaml"), "no recipe file"},
	} {
		code, _, messages := ran(t, "experiment", "show", c.file)
		require.Equal(t, exitBadInput, code, messages)
		require.Contains(t, messages, c.want)
	}
	code, _, messages := ran(t, "experiment", "show", file, "--axis", "dollars")
	require.Equal(t, exitBadInput, code, messages)
	require.Contains(t, messages, `--axis: must be one of steps, tokens, calls, updates, seconds, got "dollars"`)
	broken := write(strings.Replace(comparedFile, "sum(tool_calls)", "sum(nosuch)", 1))
	code, _, messages = ran(t, "experiment", "show", broken)
	require.Equal(t, exitBadInput, code, messages)
	require.Contains(t, messages, "outcome calls: query: ")
	require.Contains(t, messages, "nosuch")
}
