package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Presign counts what a presigner answers. It is safe for concurrent use, and its nil value counts nothing.
type Presign struct {
	all     *prometheus.CounterVec // by operation and outcome
	seconds prometheus.Histogram
}

// Presign returns counters of a presigner's answers. answers are the pairs of operation and outcome that there are.
func (p *Process) Presign(answers [][2]string) *Presign {
	if p == nil {
		return nil
	}
	q := &Presign{
		all: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ropewalk_presign_requests_total",
			Help: "Questions for presigned URLs, by what the URL is for and by answer."},
			[]string{"operation", "outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ropewalk_presign_request_seconds",
			Help: "Time from a question to its answer.",
			// 20 µs, less than a signature takes, to 5 s
			Buckets: prometheus.ExponentialBuckets(20e-6, 4, 10)}),
	}
	p.registry.MustRegister(q.all, q.seconds)
	for _, a := range answers {
		q.all.WithLabelValues(a[:]...) // an increase needs the zero before the first event
	}
	return q
}

// Answered counts one question that was answered.
func (q *Presign) Answered(operation, outcome string, took time.Duration) {
	if q == nil {
		return
	}
	q.all.WithLabelValues(operation, outcome).Inc()
	q.seconds.Observe(took.Seconds())
}
