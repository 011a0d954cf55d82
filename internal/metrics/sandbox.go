package metrics

import (
	"context"
	"errors"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Sandbox returns an executor that passes calls to next, which isolates them as strongly as tier says, and counts them
// by the names that sandbox services use. Closing it closes next. A nil Process returns next.
func (p *Process) Sandbox(next sandbox.Executor, tier sandbox.Tier) sandbox.Executor {
	if p == nil {
		return next
	}
	seconds := prometheus.ExponentialBuckets(1e-4, 4, 12)
	with := promauto.With(p.registry)
	e := &countedExecutor{Executor: next,
		calls: with.NewCounterVec(prometheus.CounterOpts{Name: "ropewalk_sandbox_calls_total",
			Help: "Calls answered, by status or kind of failure."}, []string{"status"}),
		queue: with.NewHistogram(prometheus.HistogramOpts{Name: "ropewalk_sandbox_queue_seconds",
			Help: "Time that a call waited.", Buckets: seconds}),
		service: with.NewHistogram(prometheus.HistogramOpts{Name: "ropewalk_sandbox_service_seconds",
			Help: "Time from a call's turn to its answer.", Buckets: seconds}),
	}
	for _, status := range sandbox.Statuses() {
		e.calls.WithLabelValues(string(status)) // a rate needs the zero before the first call
	}
	tiers := with.NewGaugeVec(prometheus.GaugeOpts{Name: "ropewalk_sandbox_tier",
		Help: "1 for the tier of isolation that calls get, 0 for the others."}, []string{"tier"})
	for _, t := range sandbox.Tiers() {
		tiers.WithLabelValues(string(t))
	}
	tiers.WithLabelValues(string(tier)).Set(1)
	if counted, ok := next.(sandbox.Counted); ok {
		p.sandboxStats(counted)
	}
	return e
}

// sandboxStats registers what an executor counts itself.
func (p *Process) sandboxStats(e sandbox.Counted) {
	gauge := func(name, help string, value func(sandbox.Stats) int) {
		promauto.With(p.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(e.Stats())) })
	}
	gauge("ropewalk_sandbox_busy", "Calls running now.", func(s sandbox.Stats) int { return s.Busy })
	gauge("ropewalk_sandbox_workers", "Calls that can run at once.", func(s sandbox.Stats) int { return s.Workers })
	counter := func(name, help string, value func(sandbox.Stats) int64) {
		promauto.With(p.registry).NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(value(e.Stats())) })
	}
	counter("ropewalk_sandbox_forks_total", "Children started.", func(s sandbox.Stats) int64 { return s.Forks })
	counter("ropewalk_sandbox_aside_total", "Calls set aside because they took long while others waited.",
		func(s sandbox.Stats) int64 { return s.Aside })
}

// countedExecutor counts the calls of an executor.
type countedExecutor struct {
	sandbox.Executor
	calls          *prometheus.CounterVec
	queue, service prometheus.Histogram
}

// Run implements sandbox.Executor.
func (e *countedExecutor) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	results, err := e.Executor.Run(ctx, calls)
	var broken sandbox.CallErrors
	if err != nil && (!errors.As(err, &broken) || len(broken) != len(calls)) {
		e.calls.WithLabelValues(string(sandbox.StatusInfrastructure)).Add(float64(len(calls)))
		return results, err
	}
	for i, r := range results {
		if broken != nil && broken[i] != nil {
			e.calls.WithLabelValues(string(sandbox.StatusInfrastructure)).Inc()
			continue
		}
		e.calls.WithLabelValues(string(r.Status)).Inc()
		e.queue.Observe(r.Timing.Queue.Seconds())
		e.service.Observe(r.Timing.Wall.Seconds())
	}
	return results, err
}

// Workers returns how many calls the executor runs at once.
func (e *countedExecutor) Workers() int {
	if sized, ok := e.Executor.(interface{ Workers() int }); ok {
		return sized.Workers()
	}
	return runtime.NumCPU()
}
