package service

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// metrics are what /metrics returns. They have their own registry.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec // by status of the verdict or kind of failure
	cells    *prometheus.CounterVec
	queue    prometheus.Histogram
	service  prometheus.Histogram
	cellTime prometheus.Histogram
}

// seconds are the bounds of the histograms' buckets: 0.1 ms to about 400 s.
var seconds = prometheus.ExponentialBuckets(1e-4, 2, 23)

func newMetrics(s *Service) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ropewalk_sandbox_calls_total",
			Help: "Calls answered, by status or kind of failure."}, []string{"status"}),
		cells: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ropewalk_sandbox_cells_total",
			Help: "Cells answered, by status or kind of failure."}, []string{"status"}),
		queue: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ropewalk_sandbox_queue_seconds",
			Help: "Time that a call waited.", Buckets: seconds}),
		service: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ropewalk_sandbox_service_seconds",
			Help: "Time from a call's turn to its answer.", Buckets: seconds}),
		cellTime: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ropewalk_sandbox_cell_seconds",
			Help: "Time of a cell.", Buckets: seconds}),
	}
	for _, status := range sandbox.Statuses() {
		if !status.Breakage() {
			m.calls.WithLabelValues(string(status)) // a rate needs the initial zero
			m.cells.WithLabelValues(string(status))
		}
	}
	for _, kind := range []string{rpc.KindQueueTimeout, rpc.KindInfrastructure} {
		m.calls.WithLabelValues(kind)
		m.cells.WithLabelValues(kind)
	}
	m.registry.MustRegister(m.calls, m.cells, m.queue, m.service, m.cellTime,
		clientCollector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.gauges(s)
	if counted, ok := s.o.Executor.(sandbox.Counted); ok {
		m.executor(counted)
	}
	return m
}

// gauges registers metrics that read the service on request.
func (m *metrics) gauges(s *Service) {
	gauge := func(name, help string, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	gauge("ropewalk_sandbox_queue_calls", "Calls waiting now.",
		func() float64 { jobs, _ := s.queue.depth(); return float64(jobs) })
	gauge("ropewalk_sandbox_queue_bytes", "Bytes of the calls waiting now.",
		func() float64 { _, bytes := s.queue.depth(); return float64(bytes) })
	gauge("ropewalk_sandbox_queue_capacity_bytes", "Bytes that may wait before the service stops reading.",
		func() float64 { return float64(s.o.QueueBytes) })
	gauge("ropewalk_sandbox_sessions", "Sessions open now.", func() float64 { return float64(s.sessions.count()) })
	gauge("ropewalk_sandbox_connections", "Connections open now.",
		func() float64 { return float64(s.connections.count()) })
	gauge("ropewalk_sandbox_draining", "1 while no calls are accepted.", func() float64 {
		if s.Draining() {
			return 1
		}
		return 0
	})
	tiers := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ropewalk_sandbox_tier",
		Help: "1 for the tier of isolation that calls get, 0 for the others."}, []string{"tier"})
	for _, t := range sandbox.Tiers() {
		tiers.WithLabelValues(string(t))
	}
	tiers.WithLabelValues(string(s.tier())).Set(1)
	m.registry.MustRegister(tiers)
}

// executor registers what the executor counts.
func (m *metrics) executor(e sandbox.Counted) {
	read := func(name, help string, value func(sandbox.Stats) float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return value(e.Stats()) }))
	}
	read("ropewalk_sandbox_forks_total", "Children started.", func(s sandbox.Stats) float64 { return float64(s.Forks) })
	read("ropewalk_sandbox_recycled_zygotes_total", "Interpreters replaced because of their age.",
		func(s sandbox.Stats) float64 { return float64(s.Recycled) })
	read("ropewalk_sandbox_aside_total", "Calls set aside because they took long while others waited.",
		func(s sandbox.Stats) float64 { return float64(s.Aside) })
	gauge := func(name, help string, value func(sandbox.Stats) int) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(e.Stats())) }))
	}
	gauge("ropewalk_sandbox_busy", "Calls running now.", func(s sandbox.Stats) int { return s.Busy })
	gauge("ropewalk_sandbox_workers", "Calls that can run at once.", func(s sandbox.Stats) int { return s.Workers })
}

func (m *metrics) answered(c *client, a answer) {
	m.calls.WithLabelValues(a.status()).Inc()
	c.counts.answer(a)
}

func (m *metrics) served(queued, took time.Duration) {
	m.queue.Observe(queued.Seconds())
	m.service.Observe(took.Seconds())
}

func (m *metrics) cell(c *client, a answer, took time.Duration) {
	c.counts.answer(a)
	m.cells.WithLabelValues(a.status()).Inc()
	m.cellTime.Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// status returns an answer's label in metrics: the verdict's status or the kind of failure.
func (a answer) status() string {
	if a.err != nil {
		return rpc.FromError(a.err).Kind
	}
	return string(a.result.Status)
}

// tier returns the executor's tier of isolation; "" if it does not say.
func (s *Service) tier() sandbox.Tier {
	if e, ok := s.o.Executor.(interface{ Isolation() string }); ok {
		return sandbox.Tier(e.Isolation())
	}
	return ""
}
