package metrics

import (
	"errors"
	"maps"
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
	return temporalHandler{registry: p.registry}
}

// temporalHandler implements client.MetricsHandler for some tags.
type temporalHandler struct {
	registry prometheus.Registerer
	tags     map[string]string
}

// WithTags implements client.MetricsHandler.
func (h temporalHandler) WithTags(tags map[string]string) client.MetricsHandler {
	merged := map[string]string{}
	maps.Copy(merged, h.tags)
	maps.Copy(merged, tags)
	return temporalHandler{registry: h.registry, tags: merged}
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
	vec := once(h.registry, prometheus.NewCounterVec(
		prometheus.CounterOpts{Name: name + "_total", Help: temporalHelp}, temporalLabels))
	return temporalCounter{vec.WithLabelValues(h.values()...)}
}

// Gauge implements client.MetricsHandler.
func (h temporalHandler) Gauge(name string) client.MetricsGauge {
	vec := once(h.registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: temporalHelp},
		temporalLabels))
	return temporalGauge{vec.WithLabelValues(h.values()...)}
}

// Timer implements client.MetricsHandler.
func (h temporalHandler) Timer(name string) client.MetricsTimer {
	vec := once(h.registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name + "_seconds",
		Help: temporalHelp, Buckets: prometheus.ExponentialBuckets(0.002, 4, 11)}, temporalLabels))
	return temporalTimer{vec.WithLabelValues(h.values()...)}
}

const temporalHelp = "Counted by Temporal's SDK: https://docs.temporal.io/references/sdk-metrics"

// once registers a metric, unless its name has been used before: then it returns the metric that is registered.
func once[V prometheus.Collector](registry prometheus.Registerer, metric V) V {
	var before prometheus.AlreadyRegisteredError
	if err := registry.Register(metric); errors.As(err, &before) {
		return before.ExistingCollector.(V)
	} else if err != nil {
		panic(err) // as MustRegister does
	}
	return metric
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
