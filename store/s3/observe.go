package s3

import (
	"net/http"
	"time"
)

// Observer is told of the requests that a store sends. Its method is called concurrently and must not block.
type Observer interface {
	// Request reports one request, once its answer has begun: what it asked for (get, list, head, put, put_if_absent,
	// put_part, delete, or other), the answer's status (0: there was none), the time until then,
	// and the bytes of both bodies (−1: unknown).
	Request(operation string, status int, took time.Duration, sent, received int64)
}

// observing passes requests on and reports them.
type observing struct {
	next http.RoundTripper
	to   Observer
}

func observed(next http.RoundTripper, to Observer) http.RoundTripper {
	if to == nil {
		return next
	}
	return observing{next, to}
}

// RoundTrip implements http.RoundTripper.
func (t observing) RoundTrip(r *http.Request) (*http.Response, error) {
	operation, sent, began := operationOf(r), r.ContentLength, time.Now()
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		t.to.Request(operation, 0, time.Since(began), sent, -1)
		return nil, err
	}
	t.to.Request(operation, answer.StatusCode, time.Since(began), sent, answer.ContentLength)
	return answer, nil
}

// operationOf names what a request asks for.
func operationOf(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && (query.Has("list-type") || query.Has("uploads") || query.Has("uploadId")):
		return "list"
	case r.Method == http.MethodGet && len(query) == 0:
		return "get"
	case r.Method == http.MethodHead:
		return "head"
	case r.Method == http.MethodDelete:
		return "delete"
	case r.Method == http.MethodPut && query.Has("partNumber"):
		return "put_part"
	case r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "":
		return "put_if_absent"
	case r.Method == http.MethodPut:
		return "put"
	}
	return "other" // the beginning and the end of an upload in parts, and questions about the bucket
}
