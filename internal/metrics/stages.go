package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// stageSeconds are the bounds of the buckets of a stage's duration: 10 ms to about 3 hours.
var stageSeconds = prometheus.ExponentialBuckets(0.01, 2, 20)

// Stages counts the executions of stages by stage. It is safe for concurrent use, and its nil value counts nothing.
type Stages struct {
	started, retried, committed, adopted *prometheus.CounterVec
	failed                               *prometheus.CounterVec // by stage and kind of failure
	rows, tokens, bytes                  *prometheus.CounterVec
	running                              *prometheus.GaugeVec
	seconds                              *prometheus.HistogramVec
	states                               *prometheus.CounterVec // by state that a run has entered
	device                               *deviceGauges
}

// deviceGauges show how the latest execution of a stage used its engine's devices.
type deviceGauges struct{ mfu, busy, tokens, peak *prometheus.GaugeVec }

func newStages(r prometheus.Registerer) *Stages {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"stage"})
	}
	s := &Stages{
		started: counter("ropewalk_stage_started_total", "Executions of stages that began.", "stage"),
		retried: counter("ropewalk_stage_retried_total", "Of these, second and later attempts.", "stage"),
		committed: counter("ropewalk_stage_committed_total", "Executions that did the work of their stage.",
			"stage"),
		adopted: counter("ropewalk_stage_adopted_total", "Executions that found their stage committed.", "stage"),
		failed:  counter("ropewalk_stage_failed_total", "Executions that failed, by kind of failure.", "stage", "kind"),
		rows:    counter("ropewalk_stage_rows_total", "Rows of committed stages.", "stage"),
		tokens:  counter("ropewalk_stage_tokens_total", "Tokens of committed stages.", "stage"),
		bytes:   counter("ropewalk_stage_bytes_total", "Bytes of the shards that stages have committed.", "stage"),
		running: gauge("ropewalk_stage_running", "Executions that run now."),
		seconds: promauto.With(r).NewHistogramVec(prometheus.HistogramOpts{Name: "ropewalk_stage_seconds",
			Help: "Duration of executions that did the work of their stage.", Buckets: stageSeconds},
			[]string{"stage"}),
		states: counter("ropewalk_run_states_total", "States that runs have entered, as this worker noted them.",
			"state"),
		device: &deviceGauges{
			mfu: gauge("ropewalk_engine_mfu_ratio", "Model flops of the latest execution, as a share of the peak."),
			busy: gauge("ropewalk_engine_busy_ratio",
				"Share of the latest execution in which the devices worked."),
			tokens: gauge("ropewalk_engine_tokens_per_second", "Tokens a second of the latest execution."),
			peak: gauge("ropewalk_engine_memory_peak_bytes",
				"Most memory that one device has held by the end of the latest execution."),
		},
	}
	// A rate needs the zero before the first event.
	for _, state := range []string{schema.StateRunning, schema.StatePaused, schema.StateParked, schema.StateInterrupted,
		schema.StateStoppedEarly, schema.StateCancelled, schema.StateFailed, schema.StateDone} {
		s.states.WithLabelValues(state)
	}
	for _, stage := range stages.Named(func(stages.Stage) bool { return true }) {
		for _, c := range []*prometheus.CounterVec{s.started, s.retried, s.committed, s.adopted, s.rows, s.tokens,
			s.bytes} {
			c.WithLabelValues(stage)
		}
		s.running.WithLabelValues(stage)
	}
	return s
}

// Begin counts an execution that begins. attempt counts from 1; 0 if it is not known.
func (s *Stages) Begin(stage string, attempt int) {
	if s == nil {
		return
	}
	s.running.WithLabelValues(stage).Inc()
	s.started.WithLabelValues(stage).Inc()
	if attempt > 1 {
		s.retried.WithLabelValues(stage).Inc()
	}
}

// End counts the end of an execution. failure is the kind of its failure, or "" if it succeeded.
func (s *Stages) End(t api.Timing, failure string) {
	if s == nil {
		return
	}
	s.running.WithLabelValues(t.Stage).Dec()
	if failure != "" {
		s.failed.WithLabelValues(t.Stage, failure).Inc()
		return
	}
	if t.Adopted {
		s.adopted.WithLabelValues(t.Stage).Inc()
		return
	}
	s.committed.WithLabelValues(t.Stage).Inc()
	s.rows.WithLabelValues(t.Stage).Add(float64(t.Rows))
	s.tokens.WithLabelValues(t.Stage).Add(float64(t.Tokens))
	s.seconds.WithLabelValues(t.Stage).Observe((time.Duration(t.End-t.Start) * time.Microsecond).Seconds())
	if t.Device != nil {
		s.device.set(t.Stage, *t.Device)
	}
}

func (d *deviceGauges) set(stage string, use api.DeviceUse) {
	for _, g := range []struct {
		to    *prometheus.GaugeVec
		value *float64
	}{{d.mfu, use.MFU}, {d.busy, use.Utilisation}, {d.tokens, use.TokensPerSec}} {
		if g.value != nil {
			g.to.WithLabelValues(stage).Set(*g.value)
		}
	}
	if use.PeakBytes > 0 {
		d.peak.WithLabelValues(stage).Set(float64(use.PeakBytes))
	}
}

// Stored counts bytes that a stage has committed.
func (s *Stages) Stored(stage string, bytes int64) {
	if s != nil {
		s.bytes.WithLabelValues(stage).Add(float64(bytes))
	}
}

// Entered counts a state that a run has entered.
func (s *Stages) Entered(state string) {
	if s != nil {
		s.states.WithLabelValues(state).Inc()
	}
}
