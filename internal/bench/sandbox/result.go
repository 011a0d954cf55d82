package main

import (
	"runtime"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// result is the JSON object. A figure that was not measured is missing, and Absent says why.
type result struct {
	Stateless  *float64           `json:"stateless_calls_per_s,omitempty"` // in batches of 64
	Limit      *float64           `json:"limit_calls_per_s,omitempty"`
	LimitRatio *float64           `json:"limit_ratio,omitempty"` // stateless over limit, median over rounds
	Peers      map[string]float64 `json:"peers,omitempty"`       // calls per second
	PeerRatio  *float64           `json:"peer_ratio,omitempty"`  // stateless over the fastest isolated peer
	Latency2   *latency           `json:"latency_2_ms,omitempty"`
	// mean at 2 in flight, at the limit: the least when forking for each call
	LimitMean2     *float64 `json:"limit_latency_2_ms,omitempty"`
	Latency64      *latency `json:"latency_64_ms,omitempty"`
	Sessions       *float64 `json:"session_execs_per_s,omitempty"`        // many sessions at once
	WorkerSessions *float64 `json:"worker_session_execs_per_s,omitempty"` // one session per worker
	Session        *float64 `json:"one_session_execs_per_s,omitempty"`    // a single session
	Burst          *burst   `json:"burst,omitempty"`
	// from starting the service to a bare call's verdict
	Cold *float64 `json:"cold_start_ms,omitempty"`
	// to the call's verdict, with numpy and sympy loaded
	ColdLoaded *float64 `json:"cold_start_loaded_ms,omitempty"`
	// from SIGKILL of the loaded service to the next verdict
	Recovery *float64 `json:"recovery_ms,omitempty"`
	// share of the good calls' throughput lost to endless loops
	StuckLoss *float64          `json:"stuck_loss,omitempty"`
	Tier      string            `json:"tier"`
	Packages  string            `json:"packages"` // package set of the measured interpreters
	Call      string            `json:"call"`
	Workers   int               `json:"workers"`
	Cores     int               `json:"cores"`
	Versions  map[string]string `json:"versions"`
	Absent    map[string]string `json:"absent,omitempty"` // figure → why it is missing
	Goals     []goal            `json:"goals"`
}

// latency is in milliseconds.
type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// burst is the result of calls that were sent to the service all at once. Times count from sending the first.
type burst struct {
	Calls       int     `json:"calls"`
	Answered    int     `json:"answered"` // calls that got their own verdict
	Mixed       int     `json:"mixed_up"` // calls that got another call's verdict
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Seconds     float64 `json:"seconds"` // to the last verdict
	CallsPerS   float64 `json:"calls_per_s"`
	PeakMB      float64 `json:"peak_mb"`   // peak memory of the service and its children in MiB, sampled
	ServerMB    float64 `json:"server_mb"` // most resident memory of the service's own process in MiB
	FirstBroken string  `json:"first_broken,omitempty"`
}

func newResult(s subject) *result {
	return &result{Tier: s.executor.Isolation(), Packages: s.packages, Call: s.call.Code, Workers: s.executor.Workers(),
		Cores:    runtime.NumCPU(),
		Versions: s.versions, Absent: s.absent()}
}

// lack records why figures are missing.
func (r *result) lack(why string, keys ...string) {
	for _, key := range keys {
		r.Absent[key] = why
	}
}

// summary sorts latencies and returns their quantiles.
func summary(latencies []time.Duration) latency {
	slices.Sort(latencies)
	return latency{P50: bench.Milliseconds(bench.Quantile(latencies, 0.50)),
		P99: bench.Milliseconds(bench.Quantile(latencies, 0.99))}
}
