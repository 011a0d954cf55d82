package openai_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/openai"
)

// serve starts a server that answers each path in its way, and notes the secrets that it is sent.
func serve(t *testing.T, secrets *[]string, paths map[string]http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*secrets = append(*secrets, r.Header.Get("Authorization"))
		if answer := paths[r.URL.Path]; answer != nil {
			answer(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func file(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") }

// A file is read from where the server says that it is; the secret is sent to the server alone.
func TestDownloads(t *testing.T) {
	var elsewhere, here []string
	other := serve(t, &elsewhere, map[string]http.HandlerFunc{"/file": file})
	s := serve(t, &here, map[string]http.HandlerFunc{
		"/v1/file": file,
		"/v1/near": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v1/file", http.StatusFound) },
		"/v1/far": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/file?signature=s3cret", http.StatusFound)
		},
		"/v1/twice": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v1/near", http.StatusFound) },
		"/v1/local": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
		"/v1/gone": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/?signature=s3cret", http.StatusFound)
		},
		"/v1/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "20")
			_, _ = io.WriteString(w, "01234")
		},
	})
	c := open(t, s.URL+"/v1", nil)
	get := func(path string, most int64) (string, error) {
		var out bytes.Buffer
		_, err := c.Download(t.Context(), path, &out, 10*time.Second, most)
		return out.String(), err
	}
	for _, path := range []string{"file", "near", "far"} {
		text, err := get(path, 10)
		require.NoError(t, err, path)
		require.Equal(t, "0123456789", text, path)
	}
	require.Equal(t, []string{""}, elsewhere)
	require.NotContains(t, here, "")
	for path, want := range map[string]openai.Kind{"none": openai.NotFound, "twice": openai.NotFound,
		"local": openai.NotFound, "gone": openai.Unreachable, "cut": openai.Broken} {
		_, err := get(path, 10)
		var known *openai.Error
		require.ErrorAs(t, err, &known, path)
		require.Equal(t, want, known.Kind, path)
		require.NotContains(t, err.Error(), "s3cret")
	}
	_, err := get("file", 9)
	var known *openai.Error
	require.ErrorAs(t, err, &known)
	require.Equal(t, openai.TooLong, known.Kind)
	full := errors.New("the disk is full")
	_, err = c.Download(t.Context(), "file", failing{full}, time.Second, 10)
	require.ErrorIs(t, err, full, "not the server's fault")
}

type failing struct{ err error }

// Write implements io.Writer.
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A secret can be carried by a header of another name, and errors have their status.
func TestHeadersAndStatus(t *testing.T) {
	t.Setenv("ROPEWALK_TEST_KEY", testKey)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") != testKey || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, `{"detail":"it has expired"}`)
	}))
	defer s.Close()
	c, err := openai.Open(openai.Server{URL: s.URL, Key: "${env:ROPEWALK_TEST_KEY}", Header: "X-API-Key",
		Limit: time.Second})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Do(t.Context(), openai.Call{Method: http.MethodGet, Path: "x"})
	var known *openai.Error
	require.ErrorAs(t, err, &known)
	require.Equal(t, http.StatusGone, known.Status)
	require.ErrorContains(t, err, ": it has expired")
}
