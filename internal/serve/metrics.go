package serve

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ropewalk/ropewalk/policy"
)

// metrics are the figures of GET /metrics.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	first    prometheus.Histogram
	loads    prometheus.Counter
}

const metricPrefix = "ropewalk_serve_"

func newMetrics() *metrics {
	registry := prometheus.NewRegistry()
	with := promauto.With(registry)
	return &metrics{
		registry: registry,
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: metricPrefix + "requests_total", Help: "Answered requests, by path and status.",
		}, []string{"path", "status"}),
		seconds: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: metricPrefix + "request_seconds", Help: "Time from a request to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 20),
		}, []string{"path"}),
		first: with.NewHistogram(prometheus.HistogramOpts{
			Name:    metricPrefix + "time_to_first_token_seconds",
			Help:    "Time from a request to the first token of each of its responses.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 18),
		}),
		loads: with.NewCounter(prometheus.CounterOpts{
			Name: metricPrefix + "loads_total", Help: "Weights that were loaded since the start.",
		}),
	}
}

// observe adds the figures that the server's parts know themselves. Those whose names end in total only grow.
func (m *metrics) observe(s *Server) {
	for _, f := range []struct {
		name, help string
		read       func(policy.BatchUsage) int64
	}{
		{"rows", "Responses that are being generated.", func(u policy.BatchUsage) int64 { return int64(u.Rows) }},
		{"queued_rows", "Responses that wait.",
			func(policy.BatchUsage) int64 { return int64(s.scheduler.queued()) }},
		{"prompt_tokens_total", "Tokens of prompts that were read.",
			func(u policy.BatchUsage) int64 { return int64(u.PrefixTokens) }},
		{"prompt_tokens_reused_total", "Tokens of prompts that earlier ones had computed.",
			func(u policy.BatchUsage) int64 { return int64(u.ReusedTokens) }},
		{"generated_tokens_total", "Tokens that were sampled.",
			func(u policy.BatchUsage) int64 { return int64(u.NewTokens) }},
		{"kv_tokens", "Tokens whose keys and values there is room for.",
			func(u policy.BatchUsage) int64 { return int64(u.Tokens) }},
		{"kv_held_tokens", "Tokens that responses have reserved.",
			func(u policy.BatchUsage) int64 { return int64(u.Held) }},
		{"kv_kept_tokens", "Tokens that are kept for later prompts.",
			func(u policy.BatchUsage) int64 { return int64(u.Kept) }},
	} {
		read := func() float64 { return float64(f.read(s.scheduler.total())) }
		if name := metricPrefix + f.name; strings.HasSuffix(name, "_total") {
			promauto.With(m.registry).NewCounterFunc(prometheus.CounterOpts{Name: name, Help: f.help}, read)
		} else {
			promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: f.help}, read)
		}
	}
}

// request counts an answer.
func (m *metrics) request(path string, status int, took time.Duration) {
	if status == 0 {
		status = 499 // the client was gone before the answer
	}
	m.requests.WithLabelValues(path, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(path).Observe(took.Seconds())
}

// event notes when a response began.
func (m *metrics) event(e policy.BatchEvent, since time.Duration) {
	if e.Prefixed && e.Sampled {
		m.first.Observe(since.Seconds())
	}
}

// figures answers GET /metrics.
func (s *Server) figures(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
