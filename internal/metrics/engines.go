package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Engines counts the time in which engines work for stages. It is safe for concurrent use, and its nil value counts
// nothing.
type Engines struct{ seconds, loads *prometheus.CounterVec }

func newEngines(r prometheus.Registerer) *Engines {
	return &Engines{
		seconds: promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: "ropewalk_engine_seconds_total",
			Help: "Time in which a stage had an engine to itself, by device and by what the engine did."},
			[]string{"device", "work"}),
		loads: promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: "ropewalk_engine_loads_total",
			Help: "Checkpoints that engines have loaded."}, []string{"device"}),
	}
}

// Works counts the time of one use of an engine. work is sample or train.
func (e *Engines) Works(device, work string, took time.Duration) {
	if e != nil {
		e.seconds.WithLabelValues(device, work).Add(took.Seconds())
	}
}

// Loaded counts a checkpoint that an engine has loaded.
func (e *Engines) Loaded(device string) {
	if e != nil {
		e.loads.WithLabelValues(device).Inc()
	}
}
