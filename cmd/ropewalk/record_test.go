package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

// Bad arguments are refused before any server is joined or started.
func TestReadingCommandsRefuseBadArguments(t *testing.T) {
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sql"}, "missing argument QUERY"},
		{[]string{"sql", "select", "1"}, `unexpected argument "1"`},
		{[]string{"sql", "--csv", "--json", "select 1"}, "--csv and --json: choose one"},
		{[]string{"show"}, "missing argument RUN"},
		{[]string{"show", "r", "--step", "0"}, "--step: must be ≥ 1, got 0"},
		{[]string{"show", "r", "--step", "x"}, "--step"},
		{[]string{"show", "r", "--group", "1"}, "add --step"},
		{[]string{"show", "r", "--step", "1", "--group", "-1"}, "--group: must be ≥ 0"},
		{[]string{"show", "r", "-n", "0"}, "-n: must be ≥ 1"},
		{[]string{"verify"}, "missing argument RUN"},
		{[]string{"verify", "r", "--fix"}, "unknown flag --fix"},
		{[]string{"runs", "r"}, `unexpected argument "r"`},
		{[]string{"sql", "--gen", "new", "select 1"}, `must be heads, all or a generation's number, got "new"`},
		{[]string{"show", "r", "--gen", "-3"}, "must be heads, all or a generation's number"},
		{[]string{"verify", "r", "--gen", "01"}, "must be heads, all or a generation's number"},
		{[]string{"report"}, "missing argument RUN"},
		{[]string{"report", "R"}, "run id"},
		{[]string{"report", "a", "B"}, "run id"},
		{[]string{"report", "a", "b", "--gen", "all"}, "--gen: is for one run, and 2 are named"},
		{[]string{"report", "r", "-o", "/nowhere/at/all/r.html"}, "r.html: a file cannot be made in"},
		{[]string{"view", "r", "s"}, `unexpected argument "s"`},
		{[]string{"view", "R"}, "run id"},
		{[]string{"view", "s3://bucket/r"}, "s3://bucket/r: want s3://BUCKET/runs/run=NAME"},
		{[]string{"view", "s3://bucket/runs/run=r", "--address", "127.0.0.1:0"},
			"s3://bucket: no S3 server is selected: set AWS_ENDPOINT_URL"},
		{[]string{"view", "r", "--address", "here"}, `--address: "here" is not HOST:PORT`},
		{[]string{"view", "r", "--address", "0.0.0.0:0"}, "add --public"},
		{[]string{"view", "r", "--address", "127.0.0.1:0"}, "no such run in the record: r"},
		{[]string{"inspect"}, "missing argument FILE|KEY"},
		{[]string{"inspect", "x", "--rows", "-1"}, "--rows: must be ≥ 0"},
		{[]string{"inspect", "/"}, "read /"},
		{[]string{"replay"}, "missing argument RUN"},
		{[]string{"replay", "r", "--from", "reward"}, "--step: name a step"},
		{[]string{"replay", "r", "--step", "1"}, "--from: name a stage: reward, resample, advantage"},
		{[]string{"replay", "r", "--step", "1", "--from", "rollout"}, "--from: rollout cannot be replayed: it needs " +
			"the engine"},
		{[]string{"replay", "r", "--step", "1", "--from", "resample", "--through", "reward"},
			"--through: reward comes before resample"},
		{[]string{"replay", "r", "--step", "1", "--steps", "1-2", "--from", "reward"}, "--steps: is instead of --step"},
		{[]string{"replay", "r", "--steps", "3-1", "--from", "reward"}, "--steps: "},
		{[]string{"replay", "--check", "r", "--step", "1"}, "--check: repeats all steps"},
		{[]string{"diff", "r"}, "--step: name a step"},
		{[]string{"diff", "r", "--step", "1", "--gen", "0"}, "--gen: want two generations as BEFORE,AFTER"},
		{[]string{"diff", "r", "--step", "1", "--gen", "0,-1"}, "--gen: want two generations"},
		{[]string{"diff"}, "missing argument RUN"},
		{[]string{"diff", "a", "B"}, "run id"},
		{[]string{"diff", "r"}, "name a second run to compare two runs"},
		{[]string{"diff", "a", "b", "--step", "1"}, "--step: is for the generations of one run, and 2 runs are named"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var out, messages bytes.Buffer
			require.Equal(t, exitBadInput, Run(context.Background(), c.args, &out, &messages))
			require.Empty(t, out.String())
			require.Contains(t, messages.String(), c.want)
			require.NotContains(t, messages.String(), "starting")
		})
	}
}

func TestFaultsArePrintedWithAdvice(t *testing.T) {
	var out bytes.Buffer
	p := terminal.NewPrinter(&out)
	printFaults(p, verify.Report{
		Run: "r", Manifests: 3, Shards: 2, Rows: 10, Bytes: 999, Heads: 1, Checkpoints: 1, Pruned: 2, Orphans: 4,
		Faults: []verify.Fault{
			{Key: "a", Kind: verify.FaultMissing, Message: "is not there, and b names it"},
			{Key: "c", Kind: verify.FaultMissing, Message: "is not there, and d names it"},
		},
	})
	require.NoError(t, p.Close())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, "missing: a is not there, and b names it", lines[0])
	require.Equal(t, "what to do (missing): "+verify.FaultMissing.Advice(), lines[2])
	require.Equal(t, "run r: 2 faults; 1 steps done, 3 manifests, 2 shards, 10 rows, 1 checkpoints (2 more pruned), "+
		"999 bytes; 4 orphans, never read", lines[3])
}

func TestRunsAreListed(t *testing.T) {
	var out bytes.Buffer
	p := terminal.NewPrinter(&out)
	before, after := 0.19, 0.76
	runs := []analysis.Run{
		{CatalogueEntry: schema.CatalogueEntry{Run: "quickstart-s1", Recipe: "quickstart", Seed: 1, Steps: 120,
			Created: "2026-01-02T03:04:05Z"}, Planned: 120, StepsDone: 120, Status: "done", Before: &before,
			After: &after},
		{CatalogueEntry: schema.CatalogueEntry{Run: "s2", Recipe: "quickstart", Seed: 2, Steps: 120,
			Created: "2026-01-02T03:04:05Z"}, Planned: 120, StepsDone: 3, Status: "parked", FailureKind: "no_space",
			Before: &before},
		{CatalogueEntry: schema.CatalogueEntry{Run: "b", Recipe: "quickstart", Created: "2026-01-01T03:04:05Z"},
			StepsDone: 1, Status: "stopped_early"},
		{CatalogueEntry: schema.CatalogueEntry{Run: "evaluate-1"}, Planned: 4, Status: "done", After: &after},
	}
	printRuns(p, runs, false)
	require.NoError(t, p.Close())
	require.Equal(t, ""+
		"run            steps    success          status\n"+
		"quickstart-s1  120/120   19.0% →  76.0%  done\n"+
		"s2             3/120     19.0% → …       parked (no_space)\n"+
		"b              1/1      –                stopped early\n"+
		"evaluate-1     –                  76.0%  done\n", out.String())
	out.Reset()
	printRuns(p, runs[2:3], true)
	require.NoError(t, p.Close())
	require.Equal(t, ""+
		"run  steps  success  recipe      seed  created               status\n"+
		"b    1/1    –        quickstart  0     2026-01-01T03:04:05Z  stopped early\n", out.String())
}

// Commands that only read say where they have looked, ask no server, and leave nothing behind.
func TestReadersOfAnEmptyFolderWriteNothing(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for _, name := range []string{"ROPEWALK_HOME", "TEMPORAL_ADDRESS", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
		"ROPEWALK_S3_BUCKET"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct {
		args []string
		code int
		out  string // or in its messages
	}{
		{[]string{"runs"}, exitDone,
			"no runs in " + folder + "/.ropewalk/s3/ropewalk; `ropewalk run quickstart` makes one"},
		{[]string{"sql", "select count(*) from rewards"}, exitDone, "0"},
		{[]string{"show", "nosuch"}, exitBadInput,
			"nosuch has committed nothing in " + folder + "/.ropewalk/s3/ropewalk"},
		{[]string{"verify", "nosuch"}, exitBadInput, folder + "/.ropewalk/s3/ropewalk"},
		{[]string{"replay", "--check", "nosuch"}, exitBadInput, folder + "/.ropewalk/s3/ropewalk"},
		{[]string{"report", "nosuch", "-o", "-"}, exitBadInput, folder + "/.ropewalk/s3/ropewalk"},
		{[]string{"follow", "nosuch"}, exitBadInput, folder + "/.ropewalk/s3/ropewalk"},
		{[]string{"pause", "nosuch"}, exitBadInput, folder + "/.ropewalk/s3/ropewalk"},
		{[]string{"cancel", "nosuch"}, exitBadInput, folder + "/.ropewalk/s3/ropewalk"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var out, messages bytes.Buffer
			code := Run(t.Context(), c.args, &out, &messages)
			require.Equal(t, c.code, code, messages.String())
			require.Contains(t, out.String()+messages.String(), c.out)
			require.NotContains(t, messages.String(), "starting")
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Empty(t, left, "it leaves nothing behind")
		})
	}
}
