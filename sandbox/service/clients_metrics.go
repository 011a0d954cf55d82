package service

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// clientCounts is what /metrics says about a client.
type clientCounts struct {
	mu       sync.Mutex
	answered float64            // calls and cells
	cpu      float64            // seconds of them
	limited  map[string]float64 // requests that were refused or had to wait, by limit
}

func (c *clientCounts) limit(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limited == nil {
		c.limited = map[string]float64{}
	}
	c.limited[name]++
}

func (c *clientCounts) answer(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered++
	c.cpu += a.result.Timing.CPU.Seconds()
}

// clientCollector collects the metrics of the clients that may use the service now, so that the names in its labels
// are only theirs.
type clientCollector struct{ service *Service }

var (
	clientAnswered = prometheus.NewDesc("ropewalk_sandbox_client_answers_total",
		"Calls and cells of a client that were answered.", []string{"client"}, nil)
	clientCPU = prometheus.NewDesc("ropewalk_sandbox_client_cpu_seconds_total",
		"CPU time of a client's calls and cells.", []string{"client"}, nil)
	clientLimited = prometheus.NewDesc("ropewalk_sandbox_client_limited_total",
		"Requests of a client that were refused or had to wait because of its quota, by limit.",
		[]string{"client", "limit"}, nil)
	clientCalls = prometheus.NewDesc("ropewalk_sandbox_client_calls",
		"Calls of a client that wait or run now.", []string{"client"}, nil)
	clientSessions = prometheus.NewDesc("ropewalk_sandbox_client_sessions",
		"Sessions of a client that are open now.", []string{"client"}, nil)
)

// Describe implements prometheus.Collector.
func (c clientCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{clientAnswered, clientCPU, clientLimited, clientCalls, clientSessions} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c clientCollector) Collect(out chan<- prometheus.Metric) {
	for _, one := range c.service.clients.all() {
		send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, kind, value, append([]string{one.name}, labels...)...)
		}
		counts := &one.counts
		counts.mu.Lock()
		send(clientAnswered, prometheus.CounterValue, counts.answered)
		send(clientCPU, prometheus.CounterValue, counts.cpu)
		for _, limit := range []string{limitCalls, limitSessions, limitBytes} {
			send(clientLimited, prometheus.CounterValue, counts.limited[limit], limit)
		}
		counts.mu.Unlock()
		send(clientCalls, prometheus.GaugeValue, float64(one.calls.Load()))
		send(clientSessions, prometheus.GaugeValue, float64(c.service.sessions.countOf(one)))
	}
}
