package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Requests counts the requests that a process sends to its object store, retries included. It is safe for concurrent
// use, and its nil value counts nothing.
type Requests struct {
	all, failed, sent, received *prometheus.CounterVec
	seconds                     *prometheus.HistogramVec
}

func newRequests(r prometheus.Registerer) *Requests {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	q := &Requests{
		all: counter("ropewalk_store_requests_total", "Requests to the object store, by operation and status.",
			"operation", "status"),
		failed: counter("ropewalk_store_errors_total",
			"Requests that got no answer, or one that says that the store or the credentials are at fault.",
			"operation", "kind"),
		sent: counter("ropewalk_store_sent_bytes_total", "Bytes of the bodies that were sent.", "operation"),
		received: counter("ropewalk_store_received_bytes_total", "Bytes of the bodies that were announced.",
			"operation"),
		seconds: promauto.With(r).NewHistogramVec(prometheus.HistogramOpts{Name: "ropewalk_store_request_seconds",
			Help:    "Time from a request to the beginning of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16)}, []string{"operation"}),
	}
	for _, operation := range []string{"get", "put", "put_if_absent", "list", "delete"} {
		q.failed.WithLabelValues(operation, "no_answer") // a rate needs the zero before the first error
	}
	return q
}

// Request counts one request that has been answered, or that got no answer if status is 0. sent and received are the
// bytes of the bodies, −1 if unknown.
func (q *Requests) Request(operation string, status int, took time.Duration, sent, received int64) {
	if q == nil {
		return
	}
	label := "none"
	if status != 0 {
		label = strconv.Itoa(status)
	}
	q.all.WithLabelValues(operation, label).Inc()
	if kind := fault(status); kind != "" {
		q.failed.WithLabelValues(operation, kind).Inc()
	}
	q.sent.WithLabelValues(operation).Add(float64(max(0, sent)))
	q.received.WithLabelValues(operation).Add(float64(max(0, received)))
	q.seconds.WithLabelValues(operation).Observe(took.Seconds())
}

// fault names what is wrong with an answer; "" for answers that are part of the protocol, such as 404 and 412.
func fault(status int) string {
	switch {
	case status == 0:
		return "no_answer"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "refused"
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return "slow_down"
	case status >= http.StatusInternalServerError:
		return "server"
	}
	return ""
}
