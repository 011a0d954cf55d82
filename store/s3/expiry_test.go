package s3

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lifecycleServer answers questions about the bucket's lifecycle rules.
func lifecycleServer(t *testing.T, status int, body string) *Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("X-Amz-Request-Id", "1")
		if !r.URL.Query().Has("lifecycle") {
			status = http.StatusBadRequest
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	s, err := New(Options{Endpoint: server.URL, AccessKey: "a", SecretKey: "b"})
	require.NoError(t, err)
	return s
}

func rule(inside string) string {
	return "<LifecycleConfiguration><Rule>" + inside + "</Rule></LifecycleConfiguration>"
}

func TestExpiry(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		status  int
		body    string
		want    time.Duration
		limited bool
	}{
		"no rules":               {404, `<Error><Code>NoSuchLifecycleConfiguration</Code></Error>`, 0, false},
		"a server without rules": {501, `<Error><Code>NotImplemented</Code></Error>`, 0, false},
		"the whole bucket": {200, rule(`<Status>Enabled</Status><Filter><Prefix></Prefix></Filter>` +
			`<Expiration><Days>30</Days></Expiration>`), 30 * day, true},
		"a part of the record": {200, rule(`<Status>Enabled</Status><Filter><Prefix>runs/run=a</Prefix></Filter>` +
			`<Expiration><Days>7</Days></Expiration>`), 7 * day, true},
		"other objects": {200, rule(`<Status>Enabled</Status><Filter><Prefix>logs/</Prefix></Filter>` +
			`<Expiration><Days>1</Days></Expiration>`), 0, false},
		"disabled": {200, rule(`<Status>Disabled</Status><Filter><Prefix></Prefix></Filter>` +
			`<Expiration><Days>1</Days></Expiration>`), 0, false},
		"unfinished uploads only": {200, rule(`<Status>Enabled</Status><Filter><Prefix></Prefix></Filter>` +
			`<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation>` +
			`</AbortIncompleteMultipartUpload>`), 0, false},
		"a date that has passed": {200, rule(`<Status>Enabled</Status><Filter><Prefix></Prefix></Filter>` +
			`<Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration>`), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, limited, err := lifecycleServer(t, c.status, c.body).Expiry(t.Context(), []string{"runs/run="})
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.limited, limited)
		})
	}
	_, _, err := lifecycleServer(t, 403, `<Error><Code>AccessDenied</Code></Error>`).Expiry(t.Context(), nil)
	require.ErrorContains(t, err, "read the lifecycle rules of the bucket")
}

// seen keeps what an observer is told.
type seen struct {
	mu    sync.Mutex
	lines []string
}

func (s *seen) Request(operation string, status int, _ time.Duration, _, _ int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, operation+" "+http.StatusText(status))
}

func TestObserverIsToldOfEveryRequest(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Request-Id", "1")
		w.Header().Set("Content-Type", "application/xml")
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`<Error><Code>NoSuchKey</Code></Error>`))
	}))
	to := &seen{}
	s, err := New(Options{Endpoint: server.URL, AccessKey: "a", SecretKey: "b", Observer: to})
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "k")
	require.Error(t, err)
	require.Equal(t, []string{"get Service Unavailable", "get Not Found"}, to.lines, "the retry is a request, too")
	server.Close()
	to.lines = nil
	_ = s.Delete(t.Context(), "k")
	require.Contains(t, to.lines, "delete ", "no answer")
}

func TestOperations(t *testing.T) {
	for want, c := range map[string]struct{ method, path, condition string }{
		"get":           {"GET", "/b/k", ""},
		"list":          {"GET", "/b/?list-type=2&prefix=x", ""},
		"head":          {"HEAD", "/b/k", ""},
		"delete":        {"DELETE", "/b/k", ""},
		"put":           {"PUT", "/b/k", ""},
		"put_if_absent": {"PUT", "/b/k", "*"},
		"put_part":      {"PUT", "/b/k?partNumber=1&uploadId=u", ""},
		"other":         {"POST", "/b/k?uploads", ""},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		if c.condition != "" {
			r.Header.Set("If-None-Match", c.condition)
		}
		require.Equal(t, want, operationOf(r))
	}
}
