package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fixture is a record of one run of two steps, 12 trajectories each.
func fixture(t *testing.T) (*analysis.Record, *recordtest.Run) {
	t.Helper()
	run := recordtest.Train(t, mem.New(), recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	return analysis.New(run.Store), run
}

// written exports and returns what was written.
func written(t *testing.T, record *analysis.Record, o export.Options) (string, export.Progress) {
	t.Helper()
	var out bytes.Buffer
	o.Run = "r"
	p, err := export.Write(context.Background(), record, &out, o)
	require.NoError(t, err)
	return out.String(), p
}

// line is what the tests read of a line.
type line struct {
	Messages, Prompt, Completion []struct {
		Role      string  `json:"role"`
		Content   *string `json:"content"`
		ToolCalls []any   `json:"tool_calls"`
	}
	Tools []struct {
		Function struct {
			Name       string
			Parameters map[string]any
		}
	}
	Trajectory string  `json:"trajectory_id"`
	Reward     float64 `json:"reward"`
	Kept       bool    `json:"kept"`
	Step       int     `json:"step"`
}

func parse(t *testing.T, text string) []line {
	t.Helper()
	var out []line
	for l := range strings.Lines(text) {
		var v line
		require.NoError(t, json.Unmarshal([]byte(l), &v))
		out = append(out, v)
	}
	return out
}

func TestLines(t *testing.T) {
	record, _ := fixture(t)
	for _, f := range []export.Format{export.OpenAI, export.SFT} {
		got, _ := written(t, record, export.Options{Format: f, Only: export.All, First: 2, Last: 2})
		got = strings.Join(strings.SplitAfter(got, "\n")[:4], "")
		golden.Check(t, string(f)+".jsonl", got, *update)
	}
}

func TestWhatIsChosen(t *testing.T) {
	record, _ := fixture(t)
	all := 2 * recordtest.Groups * recordtest.Samples
	for _, c := range []struct {
		only export.Only
		want int
		ok   func(l line) bool
	}{
		{export.All, all, func(line) bool { return true }},
		{export.Kept, 12, func(l line) bool { return l.Kept }},
		{export.Positive, 14, func(l line) bool { return l.Reward > 0 }},
		{export.KeptPositive, 6, func(l line) bool { return l.Kept && l.Reward > 0 }},
	} {
		t.Run(string(c.only), func(t *testing.T) {
			text, p := written(t, record, export.Options{Format: export.OpenAI, Only: c.only})
			got := parse(t, text)
			require.Len(t, got, c.want)
			require.Equal(t, export.Progress{Steps: 2, OfSteps: 2, Episodes: c.want, Skipped: all - c.want}, p)
			last := ""
			for _, l := range got {
				require.True(t, c.ok(l), l.Trajectory)
				require.Less(t, last, l.Trajectory, "in canonical order")
				last = l.Trajectory
			}
		})
	}
}

func TestSteps(t *testing.T) {
	record, _ := fixture(t)
	for _, c := range []struct{ first, last, want int }{{0, 0, 24}, {1, 1, 12}, {2, 2, 12}, {1, 2, 24}} {
		_, p := written(t, record, export.Options{Format: export.SFT, Only: export.All, First: c.first, Last: c.last})
		require.Equal(t, c.want, p.Episodes)
	}
	for _, c := range [][2]int{{3, 7}, {2, 9}, {1, 99}, {3, 3}} {
		var out bytes.Buffer
		_, err := export.Write(context.Background(), record, &out,
			export.Options{Run: "r", Format: export.OpenAI, First: c[0], Last: c[1]})
		require.ErrorIs(t, err, export.ErrNoSteps)
		require.ErrorContains(t, err, fmt.Sprintf("steps %d to %d are asked for, and run r has 2 steps, from 1 to 2",
			c[0], c[1]))
		require.Zero(t, out.Len(), "nothing is written")
	}
	_, err := export.Write(context.Background(), record, &bytes.Buffer{},
		export.Options{Run: "nosuch", Format: export.OpenAI})
	require.ErrorIs(t, err, analysis.ErrNoRun)
	_, err = export.Write(context.Background(), record, &bytes.Buffer{}, export.Options{Run: "r", Format: "csv"})
	require.ErrorContains(t, err, `no format "csv"`)
}

// A completion begins and ends with a response; prompt and completion are the conversation.
func TestCompletions(t *testing.T) {
	record, _ := fixture(t)
	text, _ := written(t, record, export.Options{Format: export.SFT, Only: export.KeptPositive})
	for _, l := range parse(t, text) {
		require.Positive(t, l.Reward)
		require.Len(t, l.Prompt, 1)
		require.Equal(t, "user", l.Prompt[0].Role)
		require.Equal(t, "assistant", l.Completion[0].Role)
		require.Equal(t, "assistant", l.Completion[len(l.Completion)-1].Role)
		require.Len(t, l.Tools, 1)
		require.Equal(t, protocol.ToolName, l.Tools[0].Function.Name, "as the calls of the protocol name it")
		require.Contains(t, l.Tools[0].Function.Parameters, "properties")
	}
}

// A replay's generation is read where it has made something, and heads are elsewhere.
func TestGenerations(t *testing.T) {
	record, run := fixture(t)
	ctx := context.Background()
	one := 1
	_, err := export.Write(ctx, record, &bytes.Buffer{}, export.Options{Run: "r", Format: export.OpenAI, Gen: &one})
	require.ErrorIs(t, err, analysis.ErrNoGeneration)
	require.ErrorContains(t, err, "generation 1 of run r")

	// A replay of step 2's selection keeps everything.
	view, err := record.Visible(ctx, "r")
	require.NoError(t, err)
	episodes, err := view.Episodes(ctx, 2)
	require.NoError(t, err)
	var selection []schema.SelectionRow
	for _, e := range episodes {
		s := e.Selection
		s.Kept, s.Count, s.Weight, s.Reason = true, 1, 1, ""
		selection = append(selection, s)
	}
	writer := commit.New(run.Store)
	place := schema.At("r", 2, schema.StageResample).WithGen(1)
	m := schema.NewManifest(place, recordtest.Code, schema.Digest([]byte("config")))
	shard, err := commit.PutRows(ctx, writer, place, selection)
	require.NoError(t, err)
	m.Shards = append(m.Shards, shard)
	_, _, _, err = writer.Commit(ctx, m)
	require.NoError(t, err)

	_, p := written(t, record, export.Options{Format: export.OpenAI, Only: export.Kept, Gen: &one})
	require.Equal(t, export.Progress{Steps: 1, OfSteps: 1, Episodes: 12}, p, "only step 2 has the generation")
	_, p = written(t, record, export.Options{Format: export.OpenAI, Only: export.Kept})
	require.Equal(t, 12, p.Skipped, "heads have not moved")
	zero := 0
	_, p = written(t, record, export.Options{Format: export.OpenAI, Only: export.Kept, Gen: &zero})
	require.Equal(t, 12, p.Skipped)
}

// The same record gives the same bytes, and a Parquet file of every episode.
func TestParquet(t *testing.T) {
	record, _ := fixture(t)
	a, p := written(t, record, export.Options{Format: export.Parquet, Only: export.All})
	b, _ := written(t, record, export.Options{Format: export.Parquet, Only: export.All})
	require.Equal(t, a, b)
	require.Equal(t, 24, p.Episodes)
	require.True(t, strings.HasPrefix(a, "PAR1") && strings.HasSuffix(a, "PAR1"))
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestATargetThatFails(t *testing.T) {
	record, _ := fixture(t)
	for _, f := range []export.Format{export.OpenAI, export.SFT, export.Parquet} {
		_, err := export.Write(context.Background(), record, broken{}, export.Options{Run: "r", Format: f})
		require.ErrorContains(t, err, "the disk is full", f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := export.Write(ctx, record, &bytes.Buffer{}, export.Options{Run: "r", Format: export.OpenAI})
	require.ErrorIs(t, err, context.Canceled)
}

func TestProgressIsTold(t *testing.T) {
	record, _ := fixture(t)
	var told []int
	written(t, record, export.Options{Format: export.OpenAI,
		Progress: func(p export.Progress) { told = append(told, p.Episodes) }})
	require.Equal(t, []int{12, 24}, told)
}
