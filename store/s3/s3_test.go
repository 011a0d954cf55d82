package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

// open returns a store on a fresh bucket of the server.
func open(t *testing.T, server storetest.Server, bucket string, transport http.RoundTripper) *s3.Store {
	t.Helper()
	s, err := s3.New(s3.Options{
		Endpoint: server.Endpoint, Bucket: bucket, AccessKey: server.AccessKey, SecretKey: server.SecretKey,
		Transport: transport,
	})
	require.NoError(t, err)
	require.NoError(t, s.EnsureBucket(t.Context()))
	require.NoError(t, s.EnsureBucket(t.Context()), "an existing bucket is fine")
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	var buckets atomic.Int32
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, server, fmt.Sprintf("conformance-%d", buckets.Add(1)), nil)
	})
}

// The local server keeps connections open, but not after a body in HTTP's chunks, as minio-go sends an empty object: it
// would take what it leaves of such a body for the next request.
func TestTheLocalServerKeepsConnections(t *testing.T) {
	t.Parallel()
	closes := map[bool]bool{} // by whether the body goes in chunks
	s := open(t, storetest.Versitygw(t), "connections", &transport{
		change: func(_ int32, r *http.Request, send sender) (*http.Response, error) {
			chunked := r.ContentLength == 0 && r.Body != nil
			response, err := send()
			if err == nil {
				closes[chunked] = response.Close
			}
			return response, err
		},
	})
	require.NoError(t, s.Put(t.Context(), "one", []byte("x")))
	require.NoError(t, s.Put(t.Context(), "none", nil))
	require.Equal(t, map[bool]bool{false: false, true: true}, closes)
}

// sender sends a request.
type sender = func() (*http.Response, error)

// transport calls change around the real transport, for every request that writes an object.
type transport struct {
	puts   atomic.Int32
	change func(n int32, r *http.Request, send sender) (*http.Response, error)
}

func (tr *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	send := func() (*http.Response, error) { return http.DefaultTransport.RoundTrip(r) }
	if r.Method != http.MethodPut || strings.Count(strings.Trim(r.URL.Path, "/"), "/") == 0 {
		return send()
	}
	return tr.change(tr.puts.Add(1), r, send)
}

func answer(r *http.Request, status int, code string) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	body := "<Error><Code>" + code + "</Code><Message>injected</Message></Error>"
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}, nil
}

func TestLostAcknowledgementIsRecognisedAsOurs(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	tr := &transport{change: func(n int32, _ *http.Request, send sender) (*http.Response, error) {
		response, err := send()
		if n == 1 && err == nil { // stored, but the client does not learn of it
			_ = response.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		return response, err
	}}
	s := open(t, server, "lost", tr)
	require.NoError(t, s.PutIfAbsent(t.Context(), "m/gen=0.json", []byte("mine")))
	require.EqualValues(t, 2, tr.puts.Load(), "the second try met the first one's object")
	err := s.PutIfAbsent(t.Context(), "m/gen=0.json", []byte("other"))
	require.ErrorIs(t, err, store.ErrExists)
}

func TestConflictsAndOverloadAreRetried(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	tr := &transport{change: func(n int32, r *http.Request, send sender) (*http.Response, error) {
		switch n {
		case 1:
			return answer(r, http.StatusConflict, "ConditionalRequestConflict")
		case 2:
			return answer(r, http.StatusServiceUnavailable, "SlowDown")
		}
		return send()
	}}
	s := open(t, server, "conflict", tr)
	require.NoError(t, s.PutIfAbsent(t.Context(), "m/gen=0.json", []byte("mine")))
	require.EqualValues(t, 3, tr.puts.Load())
}

func TestDamageOnTheWayIsRefused(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	tr := &transport{change: func(n int32, r *http.Request, send sender) (*http.Response, error) {
		if n <= 2 {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			body[len(body)/2] ^= 1
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return send()
	}}
	s := open(t, server, "damage", tr)
	require.Error(t, s.Put(t.Context(), "a.bin", bytes.Repeat([]byte("data"), 100)))
	_, err := s.Get(t.Context(), "a.bin")
	require.ErrorIs(t, err, store.ErrNotFound, "a damaged object is never stored")
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	refused := "127.0.0.1:1"
	tests := []struct {
		name    string
		options s3.Options
		want    error
		text    string
	}{
		{"no bucket", s3.Options{Endpoint: server.Endpoint, Bucket: "nowhere", AccessKey: server.AccessKey,
			SecretKey: server.SecretKey}, store.ErrNoBucket, "ROPEWALK_S3_BUCKET"},
		{"unknown key", s3.Options{Endpoint: server.Endpoint, Bucket: "bbb", AccessKey: "unknown",
			SecretKey: server.SecretKey}, store.ErrCredentials, "AWS_ACCESS_KEY_ID"},
		{"wrong secret", s3.Options{Endpoint: server.Endpoint, Bucket: "bbb", AccessKey: server.AccessKey,
			SecretKey: "sesame-4712"}, store.ErrCredentials, "AWS_SECRET_ACCESS_KEY"},
		{"no server", s3.Options{Endpoint: refused, Bucket: "bbb", AccessKey: server.AccessKey,
			SecretKey: server.SecretKey}, store.ErrUnreachable, "AWS_ENDPOINT_URL_S3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := s3.New(test.options)
			require.NoError(t, err)
			for op, call := range map[string]func() error{
				"get":    func() error { _, err := s.Get(t.Context(), "a/b.json"); return err },
				"put":    func() error { return s.Put(t.Context(), "a/b.json", []byte("x")) },
				"absent": func() error { return s.PutIfAbsent(t.Context(), "a/b.json", []byte("x")) },
				"list":   func() error { _, err := s.List(t.Context(), "a/"); return err },
			} {
				err := call()
				require.ErrorIs(t, err, test.want, op)
				require.ErrorContains(t, err, test.text, op)
				require.NotContains(t, err.Error(), test.options.SecretKey, op)
				if test.want == store.ErrUnreachable {
					break // each call waits out its retries
				}
			}
		})
	}
}

func TestFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	server := storetest.Versitygw(t)
	tr := &transport{change: func(_ int32, r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		return answer(r, http.StatusInsufficientStorage, "StorageFull")
	}}
	err := open(t, server, "full", tr).Put(t.Context(), "a.bin", []byte("x"))
	require.ErrorIs(t, err, store.ErrNoSpace)
	require.EqualValues(t, 1, tr.puts.Load(), "a full disk is not tried again")
}

func TestFromEnv(t *testing.T) {
	clear := []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "ROPEWALK_S3_BUCKET"}
	tests := []struct {
		name string
		env  map[string]string
		want s3.Options
		err  string
	}{
		{"local server", map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:7070/", "AWS_ACCESS_KEY_ID": "k",
			"AWS_SECRET_ACCESS_KEY": "s"},
			s3.Options{Endpoint: "127.0.0.1:7070", Region: "us-east-1", Bucket: "ropewalk", AccessKey: "k",
				SecretKey: "s"}, ""},
		{"the service's own endpoint wins", map[string]string{"AWS_ENDPOINT_URL": "http://a:1",
			"AWS_ENDPOINT_URL_S3": "https://b:2", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s",
			"AWS_SESSION_TOKEN": "t", "AWS_DEFAULT_REGION": "eu-west-1", "ROPEWALK_S3_BUCKET": "mine"},
			s3.Options{Endpoint: "b:2", Region: "eu-west-1", Bucket: "mine", AccessKey: "k", SecretKey: "s",
				SessionToken: "t", Secure: true}, ""},
		{"Amazon", map[string]string{"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "k",
			"AWS_SECRET_ACCESS_KEY": "s"},
			s3.Options{Endpoint: "s3.eu-central-1.amazonaws.com", Region: "eu-central-1", Bucket: "ropewalk",
				AccessKey: "k", SecretKey: "s", Secure: true}, ""},
		{"no key", map[string]string{"AWS_SECRET_ACCESS_KEY": "s"}, s3.Options{}, "AWS_ACCESS_KEY_ID is not set"},
		{"no secret", map[string]string{"AWS_ACCESS_KEY_ID": "k"}, s3.Options{}, "AWS_SECRET_ACCESS_KEY is not set"},
		{"credentials in the URL", map[string]string{"AWS_ENDPOINT_URL": "http://user:hunter2@h:1",
			"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}, s3.Options{}, "holds credentials"},
		{"not a URL", map[string]string{"AWS_ENDPOINT_URL": "http://user:hunter2@h:port", "AWS_ACCESS_KEY_ID": "k",
			"AWS_SECRET_ACCESS_KEY": "s"}, s3.Options{}, "not a URL"},
		{"a path", map[string]string{"AWS_ENDPOINT_URL": "http://h:1/bucket", "AWS_ACCESS_KEY_ID": "k",
			"AWS_SECRET_ACCESS_KEY": "s"}, s3.Options{}, "scheme, host and port only"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range clear {
				t.Setenv(name, test.env[name])
			}
			got, err := s3.FromEnv()
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				require.NotContains(t, err.Error(), "hunter2")
				return
			}
			require.NoError(t, err)
			require.True(t, test.want == got, "want %s, got %s", test.want, got)
		})
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	o := s3.Options{Endpoint: "127.0.0.1:7070", Bucket: "b", AccessKey: "k", SecretKey: "hunter2",
		SessionToken: "token3"}
	s, err := s3.New(o)
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("opened", "options", o, "store", s)
	shown := fmt.Sprintf("%v %+v %#v %s %v %s", o, o, o, o, s,
		s.String()) + log.String() + errors.New(s.String()).Error()
	require.Contains(t, shown, "s3://b at http://127.0.0.1:7070")
	require.NotContains(t, shown, "hunter2")
	require.NotContains(t, shown, "token3")
}
