package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/sandbox"
)

// shown returns the lines of a process's metrics that begin with a prefix.
func shown(t *testing.T, p *Process, prefix string) []string {
	t.Helper()
	answer := httptest.NewRecorder()
	p.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
	var lines []string
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, prefix) && !strings.Contains(line, "_bucket{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestStagesAreCountedByStage(t *testing.T) {
	p := New("worker", "c0de", "v1.2.3")
	s := p.Stages()
	s.Begin("update", 1)
	require.Contains(t, shown(t, p, "ropewalk_stage_running"), `ropewalk_stage_running{stage="update"} 1`)
	s.End(api.Timing{Stage: "update", Start: 1e6, End: 3e6, Rows: 7, Tokens: 90,
		Device: &api.DeviceUse{PeakBytes: 5 << 30, MFU: new(0.4)}}, "")
	s.Stored("update", 1000)
	s.Begin("update", 2)
	s.End(api.Timing{Stage: "update", Start: 3e6, End: 4e6, Rows: 7, Adopted: true}, "")
	s.Begin("update", 3)
	s.End(api.Timing{Stage: "update"}, api.FailNonFinite)
	s.Entered("parked")
	lines := shown(t, p, "ropewalk_")
	for _, want := range []string{
		`ropewalk_process_info{kind="worker",program="c0de",version="v1.2.3"} 1`,
		`ropewalk_stage_started_total{stage="update"} 3`,
		`ropewalk_stage_retried_total{stage="update"} 2`,
		`ropewalk_stage_committed_total{stage="update"} 1`,
		`ropewalk_stage_adopted_total{stage="update"} 1`,
		`ropewalk_stage_failed_total{kind="non_finite",stage="update"} 1`,
		`ropewalk_stage_rows_total{stage="update"} 7`, // adopted rows are not counted again
		`ropewalk_stage_tokens_total{stage="update"} 90`,
		`ropewalk_stage_bytes_total{stage="update"} 1000`,
		`ropewalk_stage_seconds_sum{stage="update"} 2`,
		`ropewalk_stage_seconds_count{stage="update"} 1`,
		`ropewalk_stage_running{stage="update"} 0`,
		`ropewalk_engine_mfu_ratio{stage="update"} 0.4`,
		`ropewalk_engine_memory_peak_bytes{stage="update"} 5.36870912e+09`,
		`ropewalk_run_states_total{state="parked"} 1`,
		`ropewalk_stage_started_total{stage="rollout"} 0`, // rates need the zero
	} {
		require.Contains(t, lines, want)
	}
}

// Answers that belong to the protocol are no errors; those that say that the store is at fault are.
func TestRequestsAndTheirErrors(t *testing.T) {
	p := New("worker", "c0de", "v1.2.3")
	q := p.Requests()
	for _, status := range []int{200, 404, 412, 500, 503, 403, 0} {
		q.Request("get", status, time.Second, -1, 10)
	}
	var counted []string
	for _, line := range shown(t, p, "ropewalk_store_errors_total") {
		if !strings.HasSuffix(line, " 0") {
			counted = append(counted, line)
		}
	}
	require.ElementsMatch(t, []string{
		`ropewalk_store_errors_total{kind="no_answer",operation="get"} 1`,
		`ropewalk_store_errors_total{kind="server",operation="get"} 1`,
		`ropewalk_store_errors_total{kind="slow_down",operation="get"} 1`,
		`ropewalk_store_errors_total{kind="refused",operation="get"} 1`,
	}, counted)
	lines := shown(t, p, "ropewalk_store_")
	require.Contains(t, lines, `ropewalk_store_requests_total{operation="get",status="none"} 1`)
	require.Contains(t, lines, `ropewalk_store_received_bytes_total{operation="get"} 70`)
}

func TestAProcessShowsWhatItCounts(t *testing.T) {
	p := New("monitor", "c0de", "v1.2.3")
	require.Empty(t, shown(t, p, "ropewalk_stage_"))
	require.Empty(t, shown(t, p, "ropewalk_store_"))
	require.Same(t, p.Stages(), p.Stages())
	require.NotEmpty(t, shown(t, p, "ropewalk_stage_"))
}

// Without an address nothing is counted, and nothing fails.
func TestNilCountsNothing(t *testing.T) {
	var p *Process
	p.Stages().Begin("update", 1)
	p.Stages().End(api.Timing{}, "")
	p.Stages().Stored("update", 1)
	p.Stages().Entered("done")
	p.Requests().Request("get", 200, 0, 0, 0)
	p.Engines().Works("cpu", "train", 0)
	p.Engines().Loaded("cpu")
	require.Nil(t, p.Temporal())
	require.NoError(t, p.Register(nil))
	executor := fake{}
	require.Equal(t, sandbox.Executor(executor), p.Sandbox(executor, sandbox.TierFull))
}

func TestTemporalsCountersGaugesAndTimers(t *testing.T) {
	p := New("worker", "c0de", "v1.2.3")
	h := p.Temporal().WithTags(map[string]string{"namespace": "n", "task_queue": "none", "client_name": "x"})
	h.Counter("temporal_request").Inc(2)
	h.WithTags(map[string]string{"operation": "PollActivity"}).Counter("temporal_request").Inc(1)
	h.Gauge("temporal_num_pollers").Update(4)
	h.Timer("temporal_request_latency").Record(500 * time.Millisecond)
	all := strings.Join(shown(t, p, "temporal_"), "\n")
	require.Contains(t, all, `operation="PollActivity"`)
	require.Contains(t, all, "temporal_request_latency_seconds_sum{")
	require.NotContains(t, all, "none")
	require.NotContains(t, all, "client_name")
	require.Regexp(t, `temporal_request_total\{[^}]*namespace="n"[^}]*operation=""[^}]*\} 2`, all)
	require.Regexp(t, `temporal_num_pollers\{[^}]*\} 4`, all)
}

// fake returns a verdict for each call, and fails as it is told.
type fake struct{ err error }

func (f fake) Run(_ context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	var batch sandbox.CallErrors
	if f.err != nil && !errors.As(f.err, &batch) {
		return nil, f.err
	}
	results := make([]sandbox.Result, len(calls))
	for i := range results {
		results[i] = sandbox.Result{Status: sandbox.StatusOK}
	}
	return results, f.err
}

func (fake) Close() error { return nil }

func TestCallsAreCountedByStatus(t *testing.T) {
	for name, c := range map[string]struct {
		err        error
		ok, broken string
	}{
		"verdicts": {nil, "2", "0"},
		"one call": {sandbox.CallErrors{nil, io.ErrUnexpectedEOF}, "1", "1"},
		"a batch":  {io.ErrUnexpectedEOF, "0", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			p := New("worker", "c0de", "v1.2.3")
			_, err := p.Sandbox(fake{c.err}, sandbox.TierLandlock).Run(t.Context(), make([]sandbox.Call, 2))
			require.Equal(t, c.err, err)
			lines := shown(t, p, "ropewalk_sandbox_")
			require.Contains(t, lines, `ropewalk_sandbox_calls_total{status="ok"} `+c.ok)
			require.Contains(t, lines, `ropewalk_sandbox_calls_total{status="infrastructure"} `+c.broken)
			require.Contains(t, lines, `ropewalk_sandbox_tier{tier="landlock"} 1`)
			require.Contains(t, lines, `ropewalk_sandbox_tier{tier="full"} 0`)
		})
	}
}

func TestServe(t *testing.T) {
	p := New("worker", "c0de", "v1.2.3")
	s, err := p.Serve("127.0.0.1:0")
	require.NoError(t, err)
	r, err := http.Get(s.URL())
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Contains(t, string(body), "ropewalk_process_info")
	_, err = p.Serve(strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/metrics"))
	require.ErrorContains(t, err, "address already in use")
	require.NoError(t, s.Close())
}
