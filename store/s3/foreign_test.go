package s3_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

// foreignAnswer is a server that answers every request alike.
func foreignAnswer(t *testing.T, status int, kind, location, body string) *s3.Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		if location != "" {
			w.Header().Set("Location", location)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	s, err := s3.New(s3.Options{Endpoint: server.URL, Bucket: "ropewalk", AccessKey: "k", SecretKey: "s"})
	require.NoError(t, err)
	return s
}

// A web server at the endpoint is named as such, whatever is asked of it: its pages are neither empty lists nor missing
// objects.
func TestAnotherServerAtTheEndpoint(t *testing.T) {
	t.Parallel()
	const page = "<!DOCTYPE html><html><body>Welcome</body></html>"
	for name, c := range map[string]struct {
		status               int
		kind, location, want string
	}{
		"a page":     {200, "text/html; charset=utf-8", "", "answers with a web page (200 OK)"},
		"no page":    {404, "text/html", "", "answers with a web page (404 Not Found)"},
		"a redirect": {302, "text/html", "https://h/login", "a web page (302 Found to https://h/login)"},
		"plain HTTP": {400, "text/html", "", "answers with a web page (400 Bad Request)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := foreignAnswer(t, c.status, c.kind, c.location, page)
			for what, ask := range map[string]func(ctx context.Context) error{
				"list": func(ctx context.Context) error { _, err := s.List(ctx, "catalogue/"); return err },
				"get":  func(ctx context.Context) error { _, err := s.Get(ctx, "a/b"); return err },
				"put":  func(ctx context.Context) error { return s.PutIfAbsent(ctx, "a/b", []byte("x")) },
			} {
				err := ask(t.Context())
				require.ErrorIs(t, err, store.ErrUnreachable, what)
				require.ErrorContains(t, err, c.want, what)
				require.ErrorContains(t, err, "check AWS_ENDPOINT_URL_S3", what)
			}
		})
	}
	// Of other types only a list can be told from an object.
	s := foreignAnswer(t, 200, "application/json", "", `{"hello": "world"}`)
	_, err := s.List(t.Context(), "catalogue/")
	require.ErrorContains(t, err, "answers with application/json (200 OK)")
}

// A page that an S3 server holds is an object like any other.
func TestAPageInTheBucket(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("X-Amz-Request-Id", "1")
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, "<html>")
	}))
	t.Cleanup(server.Close)
	s, err := s3.New(s3.Options{Endpoint: server.URL, Bucket: "ropewalk", AccessKey: "k", SecretKey: "s"})
	require.NoError(t, err)
	data, err := s.Get(t.Context(), "report.html")
	require.NoError(t, err)
	require.Equal(t, "<html>", string(data))
}
