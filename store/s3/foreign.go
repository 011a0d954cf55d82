package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// foreignError says that a server that is no S3 server has answered, such as a web server or a login page. The client
// library would take the page for an empty list or a missing object.
type foreignError struct{ what string }

// Error implements error.
func (e *foreignError) Error() string {
	return "the server answers with " + e.what + ", as no S3 server does; check AWS_ENDPOINT_URL_S3 (its host and " +
		"port, http or https)"
}

// foreign returns the error if err holds one.
func foreign(err error) (*foreignError, bool) {
	var f *foreignError
	return f, errors.As(err, &f)
}

// onlyS3 is a transport that refuses answers of other servers.
type onlyS3 struct{ next http.RoundTripper }

// withoutStrangers returns a transport that refuses answers of other servers; nil means the library's own.
func withoutStrangers(next http.RoundTripper, secure bool) (http.RoundTripper, error) {
	if next == nil {
		own, err := minio.DefaultTransport(secure)
		if err != nil {
			return nil, err
		}
		next = own
	}
	return onlyS3{next}, nil
}

// RoundTrip implements http.RoundTripper.
func (t onlyS3) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if what := foreignAnswer(r, answer); what != "" {
		_ = answer.Body.Close() // the page is of no use
		return nil, &foreignError{what}
	}
	return answer, nil
}

// foreignAnswer says what an answer is that comes from no S3 server, or returns "". S3 servers name each request in a
// header or answer in XML; an object may be of any type. Errors of a server (5xx) pass: a proxy in front of an S3
// server answers them with pages, and they are retried.
func foreignAnswer(r *http.Request, answer *http.Response) string {
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	lists := r.Method == http.MethodGet && r.URL.Query().Has("list-type")
	switch {
	case answer.StatusCode >= http.StatusInternalServerError, kind == "", strings.HasSuffix(kind, "xml"),
		answer.Header.Get("X-Amz-Request-Id") != "", answer.Header.Get("X-Amz-Id-2") != "":
		return ""
	case kind == "text/html":
		kind = "a web page"
	case !lists:
		return ""
	}
	if to, _, _ := strings.Cut(answer.Header.Get("Location"), "?"); to != "" { // the query may be a secret
		return fmt.Sprintf("%s (%s to %s)", kind, answer.Status, to)
	}
	return fmt.Sprintf("%s (%s)", kind, answer.Status)
}
