package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
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
		{[]string{"verify", "r", "--fix"}, "unknown flag: --fix"},
		{[]string{"runs", "r"}, `unexpected argument "r"`},
		{[]string{"sql", "--gen", "new", "select 1"}, `must be heads, all or a generation's number, got "new"`},
		{[]string{"show", "r", "--gen", "-3"}, "must be heads, all or a generation's number"},
		{[]string{"verify", "r", "--gen", "01"}, "must be heads, all or a generation's number"},
		{[]string{"report"}, "missing argument RUN"},
		{[]string{"report", "R"}, "run id"},
		{[]string{"report", "r", "-o", "/nowhere/at/all/r.html"}, "-o /nowhere/at/all/r.html: cannot be written"},
		{[]string{"inspect"}, "missing argument FILE|KEY"},
		{[]string{"inspect", "x", "--rows", "-1"}, "--rows: must be ≥ 0"},
		{[]string{"inspect", "/"}, "read /"},
		{[]string{"replay"}, "missing argument RUN"},
		{[]string{"replay", "r", "--from", "reward"}, "--step: name a step"},
		{[]string{"replay", "r", "--step", "1"}, "--from: name a stage: reward, resample, advantage"},
		{[]string{"replay", "r", "--step", "1", "--from", "update"}, "--from: update cannot be replayed: it needs the engine"},
		{[]string{"replay", "r", "--step", "1", "--from", "resample", "--through", "reward"}, "--through: reward comes before resample"},
		{[]string{"replay", "--check", "r", "--step", "1"}, "--check: makes all steps again"},
		{[]string{"diff", "r"}, "--step: name a step"},
		{[]string{"diff", "r", "--step", "1", "--gen", "0"}, "--gen: want two generations as BEFORE,AFTER"},
		{[]string{"diff", "r", "--step", "1", "--gen", "0,-1"}, "--gen: want two generations"},
		{[]string{"diff", "r", "--step", "1", "-o", "/nowhere/at/all.html"}, "-o /nowhere/at/all.html: cannot be written"},
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
	a := &app{out: &out}
	require.NoError(t, a.printFaults(analysis.Verification{
		Run: "r", Manifests: 3, Shards: 2, Rows: 10, Bytes: 999, Heads: 1, Checkpoints: 1, Pruned: 2, Orphans: 4,
		Faults: []analysis.Fault{
			{Key: "a", Kind: analysis.FaultMissing, Message: "is not there, and b names it"},
			{Key: "c", Kind: analysis.FaultMissing, Message: "is not there, and d names it"},
		},
	}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, "missing: a is not there, and b names it", lines[0])
	require.Equal(t, "what to do (missing): "+analysis.FaultMissing.Advice(), lines[2])
	require.Equal(t, "run r: 2 faults; 1 steps done, 3 manifests, 2 shards, 10 rows, 1 checkpoints (2 more pruned), 999 bytes; 4 orphans, never read", lines[3])
}

func TestRunsAreListed(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out}
	before, after := 0.19, 0.76
	require.NoError(t, a.printRuns([]analysis.Run{
		{CatalogueEntry: schema.CatalogueEntry{Run: "quickstart-s1", Recipe: "quickstart", Seed: 1, Steps: 120, Created: "2026-01-02T03:04:05Z"}, StepsDone: 120, Status: "done", Before: &before, After: &after},
		{CatalogueEntry: schema.CatalogueEntry{Run: "b", Recipe: "gsm8k-offline", Created: "2026-01-01T03:04:05Z"}, StepsDone: 1, Status: "done"},
	}))
	require.Equal(t, ""+
		"run            recipe             seed        steps  status  success             created\n"+
		"quickstart-s1  quickstart            1      120/120  done     19.0% →  76.0%     2026-01-02T03:04:05Z\n"+
		"b              gsm8k-offline         0          1/1  done    –                   2026-01-01T03:04:05Z\n", out.String())
	out.Reset()
	require.NoError(t, a.printRuns(nil))
	require.Contains(t, out.String(), "no runs yet")
}
