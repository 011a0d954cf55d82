package openai_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/openai"
)

// Events are read as they are written: comments and other fields are left out, lines of one event are joined, a blank
// line ends it, and OpenAI's mark ends the stream.
func TestEvents(t *testing.T) {
	for text, want := range map[string][]string{
		"data: a\n\ndata: b\n\n":                         {"a", "b"},
		"data:a\r\n\r\n: comment\r\n\r\ndata: b\r\n\r\n": {"a", "b"},
		"event: x\nid: 1\ndata: a\ndata: b\n\n":          {"a\nb"},
		"data: a\n\ndata: [DONE]\n\ndata: b\n\n":         {"a"},
		"data: a\n\ndata: b":                             {"a"}, // no whole event
		"data: a: b\n\n":                                 {"a: b"},
		"data: " + strings.Repeat("x", 100000) + "\n\n":  {strings.Repeat("x", 100000)},
		"": nil,
	} {
		got, err := events(t, func(w http.ResponseWriter) { io.WriteString(w, text) }, 1<<20)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// events asks for a stream.
func events(t *testing.T, answer func(http.ResponseWriter), most int64) (got []string, err error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "text/event-stream", r.Header.Get("Accept"))
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		answer(w)
	}))
	defer s.Close()
	_, err = open(t, s.URL, nil).Do(t.Context(), openai.Call{Method: http.MethodPost, Path: "x", Bytes: most,
		Event: func(data []byte) error {
			got = append(got, string(data))
			if string(data) == "stop" {
				return errStop
			}
			return nil
		}})
	return got, err
}

var errStop = errors.New("stop")

// A stream that breaks, exceeds its bound, or is no stream ends with the kind of error that it is.
func TestEventsThatFail(t *testing.T) {
	kind := func(err error) openai.Kind {
		var known *openai.Error
		require.ErrorAs(t, err, &known)
		return known.Kind
	}
	got, err := events(t, func(w http.ResponseWriter) {
		io.WriteString(w, "data: a\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}, 1<<20)
	require.Equal(t, openai.Broken, kind(err))
	require.Equal(t, []string{"a"}, got, "what has come before is there")
	got, err = events(t, func(w http.ResponseWriter) { io.WriteString(w, strings.Repeat("data: a\n\n", 100)) }, 90)
	require.Equal(t, openai.TooLong, kind(err))
	require.Len(t, got, 10)
	_, err = events(t, func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html") }, 90)
	require.Equal(t, openai.Malformed, kind(err))
	_, err = events(t, func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, 90)
	require.Equal(t, openai.Failing, kind(err))
	_, err = events(t, func(w http.ResponseWriter) { io.WriteString(w, "data: stop\n\ndata: b\n\n") }, 90)
	require.ErrorIs(t, err, errStop)
}
