package main

import (
	"runtime"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// result is the JSON object. A figure that was not measured is absent, and Absent says why.
type result struct {
	Stateless      *float64           `json:"stateless_calls_per_s,omitempty"` // batches of 64, as many at once as there are workers
	Limit          *float64           `json:"limit_calls_per_s,omitempty"`
	LimitRatio     *float64           `json:"limit_ratio,omitempty"` // stateless over limit, median over rounds
	Peers          map[string]float64 `json:"peers,omitempty"`       // calls per second
	PeerRatio      *float64           `json:"peer_ratio,omitempty"`  // stateless over the fastest isolated peer
	Latency2       *latency           `json:"latency_2_ms,omitempty"`
	LimitMean2     *float64           `json:"limit_latency_2_ms,omitempty"` // mean at 2 in flight, at the limit: nobody who forks for each call, without pause, has less
	Latency64      *latency           `json:"latency_64_ms,omitempty"`
	Sessions       *float64           `json:"session_execs_per_s,omitempty"`        // many sessions at once
	WorkerSessions *float64           `json:"worker_session_execs_per_s,omitempty"` // one session a worker
	Session        *float64           `json:"one_session_execs_per_s,omitempty"`    // one session alone
	Burst          *burst             `json:"burst,omitempty"`
	Cold           *float64           `json:"cold_start_ms,omitempty"`        // from starting the service to a bare call's verdict
	ColdLoaded     *float64           `json:"cold_start_loaded_ms,omitempty"` // to the call's verdict, numpy and sympy loaded
	Recovery       *float64           `json:"recovery_ms,omitempty"`          // from SIGKILL of the loaded service to the next verdict
	StuckLoss      *float64           `json:"stuck_loss,omitempty"`           // share of the good calls' throughput that endless loops take
	Tier           string             `json:"tier"`
	Packages       string             `json:"packages"` // loaded in the interpreters that were measured
	Call           string             `json:"call"`
	Workers        int                `json:"workers"`
	Cores          int                `json:"cores"`
	Versions       map[string]string  `json:"versions"`
	Absent         map[string]string  `json:"absent,omitempty"` // figure: why it is not there
	Goals          []goal             `json:"goals"`
}

// latency is in milliseconds.
type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// burst is what became of calls that were handed to the service all at once. Times are from the first hand-over.
type burst struct {
	Calls       int     `json:"calls"`
	Answered    int     `json:"answered"` // verdicts that are the call's own
	Mixed       int     `json:"mixed_up"` // verdicts that are another call's
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Seconds     float64 `json:"seconds"` // to the last verdict
	CallsPerS   float64 `json:"calls_per_s"`
	PeakMB      float64 `json:"peak_mb"`   // MiB that the service and its children held at most, sampled
	ServerMB    float64 `json:"server_mb"` // MiB that the service's own process had resident at most
	FirstBroken string  `json:"first_broken,omitempty"`
}

func newResult(s subject) *result {
	return &result{Tier: s.executor.Isolation(), Packages: s.packages, Call: s.call.Code, Workers: s.executor.Workers(), Cores: runtime.NumCPU(),
		Versions: s.versions, Absent: s.absent()}
}

// lack notes why figures are not there.
func (r *result) lack(why error, keys ...string) {
	for _, key := range keys {
		r.Absent[key] = why.Error()
	}
}

// summary gives the latencies' quantiles; it sorts them.
func summary(latencies []time.Duration) latency {
	slices.Sort(latencies)
	return latency{P50: bench.Milliseconds(bench.Quantile(latencies, 0.50)), P99: bench.Milliseconds(bench.Quantile(latencies, 0.99))}
}
