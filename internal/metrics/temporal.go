package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
)

// temporalLabels are the tags that Temporal's SDK sets. A metric has an empty value for tags that it is not given,
// which is the same to Prometheus as no label.
var temporalLabels = []string{"namespace", "task_queue", "worker_type", "workflow_type", "activity_type", "poller_type",
	"operation", "failure_reason", "cause", "status_code", "nexus_service", "nexus_operation"}

// Temporal returns what Temporal's SDK counts with: counters end in _total and timers are histograms in seconds. It is
// nil for a nil Process, which the SDK takes as none.
func (p *Process) Temporal() client.MetricsHandler {
	if p == nil {
		return nil
	}
	return temporalHandler{all: &temporalMetrics{registry: p.registry, counters: map[string]*prometheus.CounterVec{},
		gauges: map[string]*prometheus.GaugeVec{}, timers: map[string]*prometheus.HistogramVec{}}}
}

// temporalMetrics are made when the SDK first uses their names.
type temporalMetrics struct {
	registry prometheus.Registerer
	mu       sync.Mutex
	counters map[string]*prometheus.CounterVec
	gauges   map[string]*prometheus.GaugeVec
	timers   map[string]*prometheus.HistogramVec
}

// temporalHandler implements client.MetricsHandler for some tags.
type temporalHandler struct {
	all  *temporalMetrics
	tags map[string]string
}

// WithTags implements client.MetricsHandler.
func (h temporalHandler) WithTags(tags map[string]string) client.MetricsHandler {
	merged := maps.Clone(h.tags)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, tags)
	return temporalHandler{all: h.all, tags: merged}
}

// values are the tags in the order of temporalLabels. Other tags, and the SDK's word for none, are left out.
func (h temporalHandler) values() []string {
	out := make([]string, len(temporalLabels))
	for i, label := range temporalLabels {
		if v := h.tags[label]; v != "none" {
			out[i] = v
		}
	}
	return out
}

// Counter implements client.MetricsHandler.
func (h temporalHandler) Counter(name string) client.MetricsCounter {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	vec := once(h.all, h.all.counters, name, func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name + "_total", Help: temporalHelp},
			temporalLabels)
	})
	return temporalCounter{vec.WithLabelValues(h.values()...)}
}

// Gauge implements client.MetricsHandler.
func (h temporalHandler) Gauge(name string) client.MetricsGauge {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	vec := once(h.all, h.all.gauges, name, func() *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: temporalHelp}, temporalLabels)
	})
	return temporalGauge{vec.WithLabelValues(h.values()...)}
}

// Timer implements client.MetricsHandler.
func (h temporalHandler) Timer(name string) client.MetricsTimer {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	vec := once(h.all, h.all.timers, name, func() *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name + "_seconds", Help: temporalHelp,
			Buckets: prometheus.ExponentialBuckets(0.002, 4, 11)}, temporalLabels)
	})
	return temporalTimer{vec.WithLabelValues(h.values()...)}
}

const temporalHelp = "Counted by Temporal's SDK: https://docs.temporal.io/references/sdk-metrics"

// once returns the metric of a name, which it makes and registers at the first use. The caller holds the lock.
func once[V prometheus.Collector](all *temporalMetrics, in map[string]V, name string, make func() V) V {
	if v, ok := in[name]; ok {
		return v
	}
	in[name] = make()
	all.registry.MustRegister(in[name])
	return in[name]
}

type temporalCounter struct{ to prometheus.Counter }

// Inc implements client.MetricsCounter.
func (c temporalCounter) Inc(by int64) { c.to.Add(float64(by)) }

type temporalGauge struct{ to prometheus.Gauge }

// Update implements client.MetricsGauge.
func (g temporalGauge) Update(to float64) { g.to.Set(to) }

type temporalTimer struct{ to prometheus.Observer }

// Record implements client.MetricsTimer.
func (t temporalTimer) Record(took time.Duration) { t.to.Observe(took.Seconds()) }
