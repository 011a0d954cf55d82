package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/schema"
)

// pip installs the package from a copy of its folder, as a user does, and returns where.
func pip(t *testing.T, interpreter string) string {
	t.Helper()
	source, target := filepath.Join(t.TempDir(), "python"), t.TempDir()
	require.NoError(t, os.CopyFS(source, os.DirFS(filepath.Join(root(), "python"))))
	cmd := exec.Command(interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--root-user-action",
		"ignore",
		"--no-index", "--no-deps", "--no-build-isolation", "--target", target, source)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.FileExists(t, filepath.Join(target, "ropewalk", "py.typed"))
	return target
}

// pythonEnv is the environment of Python code that imports the package from a folder and reads the
// home's S3 server.
func (h *home) pythonEnv(t *testing.T, packages string) []string {
	t.Helper()
	return append(slices.Concat(h.env, shared.servers), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1",
		"AWS_EC2_METADATA_DISABLED=true")
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into), path)
}

// answer is a query and the answer of `ropewalk sql` to it.
type answer struct {
	Query   string   `json:"query"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

func (h *home) ask(t *testing.T, run, query string) answer {
	t.Helper()
	a := answer{Query: query}
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "sql", "--run", run, "--json", query).ok(t).out), &a))
	return a
}

// pythonQueries run in both readers, in addition to a count of each table.
var pythonQueries = []string{
	"select step, avg(reward) as reward, count(*) filter (success) as successes from rewards group by step order by " +
		"step",
	"select step, reason, count(*) as n, sum(count) as counted, sum(weight) as weight from selection group by all " +
		"order by all",
	"select sum(len(token_ids)) as tokens, sum(list_sum(logprobs)) as logprobs, sum(list_sum(loss_mask)) as sampled " +
		"from turns",
	"select tag, greedy, count(*) as n, avg(success::int) as success from evaluations group by all order by all",
	"select step, sum(tokens) as tokens, avg(entropy) as entropy, max(policy_after) as policy from updates group by " +
		"step order by step",
	"select stage, count(*) as n, sum(end_micros - start_micros) as micros from timings group by stage order by stage",
	"select status, count(*) as n, max(response) as response from tool_calls group by status order by status",
	"select count(*) as n from prompts join trajectories using (run, step, gen, group_id)",
}

// counts asks how many rows each table of a run has.
func (h *home) counts(t *testing.T, run string) answer {
	t.Helper()
	var each []string
	for _, table := range schema.Tables() {
		each = append(each, fmt.Sprintf("select '%s' as name, run, step, gen, count(*) as n from %s group by all",
			table, table))
	}
	return h.ask(t, run, strings.Join(each, " union all ")+" order by all")
}

// facts writes down, for the Python tests, what is known without the package about a run and about an import, whose
// prompts have another place.
func (h *home) facts(t *testing.T, run report) string {
	t.Helper()
	const imported = "python-import"
	h.run(t, "import", "openai", h.conversations(t), "--run-id", imported).ok(t)
	var listing struct {
		Runs []map[string]any `json:"runs"`
	}
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "runs", "--json").ok(t).out), &listing))
	columns := map[string][]string{}
	for _, row := range h.ask(t, run.Run, "select table_name, column_name from information_schema.columns "+
		"order by ordinal_position").Rows {
		if table := row[0].(string); slices.Contains(append(schema.Tables(), schema.Batch), schema.Table(table)) {
			columns[table] = append(columns[table], row[1].(string))
		}
	}
	answers := []answer{h.counts(t, run.Run)}
	for _, query := range pythonQueries {
		answers = append(answers, h.ask(t, run.Run, query))
	}
	var recipe map[string]any
	prepare := h.record().manifest(t, schema.AtInit(run.Run, schema.StagePrepare).ManifestKey())
	readJSON(t, h.record().path(prepare.ShardsOf(schema.Documents)[0].Key), &recipe)
	text, err := json.Marshal(map[string]any{
		"home": h.dir, "bucket": "ropewalk", "run": run.Run, "checkpoint": run.Digest, "recipe": recipe,
		"runs": listing.Runs, "columns": columns, "answers": answers,
		"imported": imported, "imported_answers": []answer{h.counts(t, imported)},
	})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "facts.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}

func TestPythonPackageReadsTheRecord(t *testing.T) {
	longform.Need(t, packageVariable, "test-python-package")
	interpreter := pythontest.Need(t, "NOTEBOOK", "pytest", "pyarrow", "polars", "pandas", "duckdb", "flit_core", "pip")
	h, plain := needs(t, sharedStack)
	// every table has rows
	run := h.train(t, "python-all", "--set", "token_outputs.entropies=true", "--set", "replay={size: 1000}")
	require.Equal(t, plain.Digest, run.Digest, "what is computed for the record alone changes no policy")
	cmd := exec.Command(interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider",
		filepath.Join(root(), "python", "tests"))
	cmd.Env = append(h.pythonEnv(t, pip(t, interpreter)), "ROPEWALK_TEST_RUN="+h.facts(t, run))
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `\n\d+ passed in `, string(out), "no test is skipped")
}

func TestPythonPackageIsTyped(t *testing.T) {
	longform.Need(t, packageVariable, "test-python-package")
	interpreter := pythontest.Need(t, "NOTEBOOK", "mypy", "pytest", "pyarrow", "polars", "pandas", "duckdb")
	// mypy compares its cache there with the files' digests; without the cache it reads all of pandas again
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	cmd := exec.Command(interpreter, "-m", "mypy", "--strict", "--cache-dir", filepath.Join(cache, "ropewalk-mypy"))
	cmd.Dir = filepath.Join(root(), "python")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// figures is the number of figures that the notebook shows.
const figures = 4

func TestNotebookShowsTheRun(t *testing.T) {
	longform.Need(t, packageVariable, "test-python-package")
	interpreter := pythontest.Need(t, "NOTEBOOK", "nbclient", "ipykernel", "matplotlib", "pyarrow", "polars", "pandas",
		"duckdb")
	h, run := needs(t, sharedStack)
	out := filepath.Join(t.TempDir(), "analysis.ipynb")
	cmd := exec.Command(interpreter, filepath.Join(root(), "python", "execute.py"), notebookPath(), out)
	cmd.Env = append(h.pythonEnv(t, filepath.Join(root(), "python")),
		"ROPEWALK_RUN_URL=s3://ropewalk/"+strings.TrimSuffix(schema.RunPrefix(run.Run), "/"))
	cmd.Dir = t.TempDir()
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	text := checkNotebook(t, out)
	require.Contains(t, text, run.Run)
	require.Contains(t, text, fmt.Sprintf("%d finished steps", steps))
}

func TestCommittedNotebookIsWhole(t *testing.T) {
	checkNotebook(t, notebookPath())
	info, err := os.Stat(notebookPath())
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(300<<10))
}

func notebookPath() string { return filepath.Join(root(), "docs", "analysis.ipynb") }

// notebook has the fields of a Jupyter notebook, format 4, that the tests read.
type notebook struct {
	Cells []struct {
		Type    string `json:"cell_type"`
		Count   int    `json:"execution_count"`
		Outputs []struct {
			Type string          `json:"output_type"`
			Name string          `json:"name"` // of a stream
			Text []string        `json:"text"`
			Data json.RawMessage `json:"data"` // by MIME type
		} `json:"outputs"`
	} `json:"cells"`
}

// place is what an output must not hold: a path or an address of the machine.
var place = regexp.MustCompile(`(^|[\s"'(=])/(tmp|home|root|work|usr|var)/|127\.0\.0\.1|localhost|0x[0-9a-f]{8}`)

// checkNotebook requires that every cell ran in order, that four figures are pictures, and that there are no warnings.
// It returns the outputs' text.
func checkNotebook(t *testing.T, path string) string {
	t.Helper()
	var nb notebook
	readJSON(t, path, &nb)
	pictures, ran := 0, 0
	var text strings.Builder
	for _, cell := range nb.Cells {
		if cell.Type != "code" {
			continue
		}
		ran++
		require.Equal(t, ran, cell.Count, "cells ran in order")
		for _, o := range cell.Outputs {
			require.NotEqual(t, "error", o.Type)
			require.NotEqual(t, "stderr", o.Name, "%s", o.Text)
			text.WriteString(strings.Join(o.Text, ""))
			var data map[string]any
			if len(o.Data) > 0 {
				require.NoError(t, json.Unmarshal(o.Data, &data))
			}
			if encoded, ok := data["image/png"].(string); ok {
				pictures++
				picture, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
				require.NoError(t, err)
				require.Greater(t, len(picture), 5000, "a figure is more than its frame")
				delete(data, "image/png")
			}
			rest, err := json.Marshal(data)
			require.NoError(t, err)
			text.Write(rest)
		}
	}
	require.Equal(t, figures, pictures)
	require.NotRegexp(t, place, text.String())
	return text.String()
}
