package e2e

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/tracetest"
)

// Each step is a trace: from its workflow over the executions of its stages, on two workers, to the calls of tools and
// engines. The log and the measured times name the spans, and the record is that of a run that is not traced. A real
// collector passes the spans on where there is one.
func TestTracesFromWorkflowToCalls(t *testing.T) {
	longform.Need(t, collectorVariable, "test-traces")
	h, want := needs(t, ownNamespace)
	h = h.with("ROPEWALK_NO_WORKER=1")
	c := tracetest.New(t)
	through(t, c)
	traced := h.with("OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "ROPEWALK_LOG_LEVEL=info", "ROPEWALK_LOG_FORMAT=json")
	one, other := traced.startWorker(t, "--queues", "cpu,rollout,gpu"), traced.startWorker(t, "--queues", "sandbox")
	h.undisturbed(t, want, h.run(t, recipe("traced")...).ok(t).report(t))
	h.run(t, recipe("flow", "--set", "rollout.mode=interleaved", "--set", "steps=1")...).ok(t)
	one.end(t)
	other.end(t) // and sends what is left

	runs, byID := map[string]string{}, map[string]tracetest.Span{} // the run of each trace
	sent := c.Spans(t)
	for _, s := range sent {
		byID[s.SpanID] = s
		if s.Name == "step" {
			require.Empty(t, s.Parent)
			runs[s.TraceID] = s.Attributes["run"]
		}
	}
	require.Len(t, runs, steps+1)
	paths := map[string]map[string]int{"traced": {}, "flow": {}}
	for _, s := range sent {
		require.Regexp(t, "^step", s.Path, "it is below a span that no one sent")
		paths[runs[s.TraceID]][s.Path]++
	}
	for run, want := range map[string][]string{
		"traced": {"step > rollout > engine sample", "step > sandbox > tool python", "step > update > engine train",
			"step > reward", "step > publish"},
		"flow": {"step > episodes > engine sample", "step > episodes > tool python", "step > episodes > rollout",
			"step > episodes > sandbox", "step > episodes > reward", "step > update > engine train", "step > publish"},
	} {
		for _, path := range want {
			require.Positive(t, paths[run][path], "%s, %s: %v", run, path, paths[run])
		}
	}
	require.Equal(t, steps, paths["traced"]["step > update"])
	require.Equal(t, 1, paths["flow"]["step > update"])
	shards := paths["flow"]["step > episodes"]
	require.Equal(t, shards, paths["flow"]["step > episodes > reward"])
	require.Greater(t, shards, 1)

	sampled := 0
	for line := range strings.Lines(one.err.String()) {
		if strings.Contains(line, `"stage":"update"`) && strings.Contains(line, `"stage done"`) {
			var fields struct {
				Trace string `json:"trace_id"`
				Span  string `json:"span_id"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
			require.Equal(t, "update", byID[fields.Span].Name, line)
			require.Equal(t, fields.Trace, byID[fields.Span].TraceID)
			sampled++
		}
	}
	require.Equal(t, steps+1, sampled)
	for run := range paths {
		measuredIn(t, h, run, runs, byID)
	}
}

// measuredIn requires that the measured times of a run's steps, of activities and of calls, name their traces and
// spans. What precedes the steps is in no trace.
func measuredIn(t *testing.T, h *home, run string, runs map[string]string, spans map[string]tracetest.Span) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(h.run(t, "sql", "--run", run, "--csv",
		"select coalesce(step, -1), stage, kind, trace_id, span_id from timings").ok(t).out)).ReadAll()
	require.NoError(t, err)
	traced := map[string]int{}
	for _, row := range rows[1:] {
		step, stage, kind, trace, span := row[0], row[1], row[2], row[3], row[4]
		if step == "-1" {
			require.Empty(t, trace+span, row)
			continue
		}
		traced[kind]++
		require.Equal(t, run, runs[trace], row)
		require.Equal(t, stage, spans[span].Name, row)
		require.Equal(t, trace, spans[span].TraceID, row)
		require.Equal(t, step, spans[span].Attributes["step"], row)
	}
	require.Positive(t, traced["activity"], run)
	require.Positive(t, traced["tool_call"], run)
}
