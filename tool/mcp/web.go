package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// web sends the requests of a session to an address. It adds the headers, bounds each answer, and ends with the
// session.
type web struct {
	next    http.RoundTripper
	headers map[string]string
	most    int64 // bytes of one answer
	life    context.Context
	excess  func()
}

// RoundTrip sends one request.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(w.life, cancel)
	release := func() { stop(); cancel() }
	req = req.Clone(ctx)
	for name, value := range w.headers {
		req.Header.Set(name, value)
	}
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		release()
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		// The session has expired, which the SDK sees only if the answer is not a JSON-RPC error too.
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	resp.Body = &body{meter: meter{ReadCloser: resp.Body, most: w.most, excess: w.excess}, release: release}
	return resp, nil
}

// body is a bounded answer.
type body struct {
	meter
	release func()
}

// Close ends the request.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

var _ io.ReadCloser = (*body)(nil)

// client returns the HTTP client of a session.
func (w *web) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the server redirects, and headers are sent to the address of the recipe alone")
	}}
}
