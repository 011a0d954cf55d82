package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/internal/testing/openaitest"
)

const testKey = "sk-secret-of-the-test"

// open opens a client whose pauses are kept instead of waited for.
func open(t *testing.T, url string, pauses *[]time.Duration) *openai.Client {
	t.Helper()
	t.Setenv("ROPEWALK_TEST_KEY", testKey)
	c, err := openai.Open(openai.Server{URL: url, Key: "${env:ROPEWALK_TEST_KEY}", Limit: 2 * time.Second, Attempts: 3,
		Bytes: 1 << 20, Wait: func(_ context.Context, d time.Duration) error {
			if pauses != nil {
				*pauses = append(*pauses, d)
			}
			return nil
		}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

var question = openai.Request{
	Model:     "m",
	Messages:  []openai.Message{{Role: "user", Content: "?"}},
	Seed:      7,
	MaxTokens: 4,
}

func anything(openai.Reply) error { return nil }

func TestChat(t *testing.T) {
	s := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, _ int) { openaitest.Say(w, r, "hello") })
	got, attempts, err := open(t, s.URL, nil).Chat(t.Context(), question, anything)
	require.NoError(t, err)
	require.Equal(t, openai.Reply{Content: "hello", Finish: "stop", Model: "m"}, got)
	require.Equal(t, 1, attempts)
	require.Equal(t, []openaitest.Request{{Request: question, Authorization: "Bearer " + testKey}}, s.Seen())
}

// Each kind of failure that may pass is tried again; then the reply counts.
func TestFailuresThatPass(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"429":       func(w http.ResponseWriter) { openaitest.Fail(w, 429, "slow down") },
		"500":       func(w http.ResponseWriter) { openaitest.Fail(w, 500, "oh") },
		"503":       func(w http.ResponseWriter) { w.WriteHeader(503) },
		"cut":       openaitest.Cut,
		"dropped":   openaitest.Drop,
		"hang":      func(w http.ResponseWriter) { openaitest.Hang(w, 2500*time.Millisecond) },
		"drip":      func(w http.ResponseWriter) { openaitest.Drip(w, 2500*time.Millisecond) },
		"garbage":   func(w http.ResponseWriter) { _, _ = io.WriteString(w, "\xff\x00 no JSON") },
		"partial":   func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"choices":[{"message":{"content":"Ma`) },
		"no choice": func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"choices":[]}`) },
		"too long":  func(w http.ResponseWriter) { openaitest.Flood(w, 2<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, n int) {
				if n < 2 {
					fail(w)
					return
				}
				openaitest.Say(w, r, "Match")
			})
			var pauses []time.Duration
			got, attempts, err := open(t, s.URL, &pauses).Chat(t.Context(), question, anything)
			require.NoError(t, err)
			require.Equal(t, "Match", got.Content)
			require.Equal(t, 3, attempts)
			require.Equal(t, []time.Duration{500 * time.Millisecond, time.Second}, pauses)
			for _, r := range s.Seen() {
				require.Equal(t, uint64(7), r.Seed, "the failures were not the model's")
			}
		})
	}
}

func TestKindsOfErrors(t *testing.T) {
	for name, c := range map[string]struct {
		answer   func(w http.ResponseWriter)
		kind     openai.Kind
		attempts int
	}{
		"always throttled": {func(w http.ResponseWriter) { openaitest.Fail(w, 429, "no") }, openai.Throttled, 3},
		"always failing":   {func(w http.ResponseWriter) { openaitest.Fail(w, 502, "no") }, openai.Failing, 3},
		"cut":              {openaitest.Cut, openai.Broken, 3},
		"dropped":          {openaitest.Drop, openai.Broken, 3},
		"bad request": {func(w http.ResponseWriter) {
			openaitest.Fail(w, 400,
				"too long a prompt")
		}, openai.Rejected, 1},
		"bad key": {func(w http.ResponseWriter) { openaitest.Fail(w, 401, "no such key") }, openai.Denied, 1},
		"no such model": {func(w http.ResponseWriter) {
			openaitest.Fail(w, 404,
				"no such model")
		}, openai.NotFound, 1},
		"redirect": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/steal")
			w.WriteHeader(307)
		}, openai.NotFound, 1},
	} {
		s := openaitest.New(t, func(w http.ResponseWriter, _ openaitest.Request, _ int) { c.answer(w) })
		_, attempts, err := open(t, s.URL, nil).Chat(t.Context(), question, anything)
		var known *openai.Error
		require.ErrorAs(t, err, &known, name)
		require.Equal(t, c.kind, known.Kind, name)
		require.Equal(t, c.attempts, attempts, name)
		require.Len(t, s.Seen(), c.attempts, name)
	}
	_, attempts, err := open(t, "http://127.0.0.1:1/v1", nil).Chat(t.Context(), question, anything)
	var known *openai.Error
	require.ErrorAs(t, err, &known)
	require.Equal(t, openai.Unreachable, known.Kind)
	require.Equal(t, 3, attempts)
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "0.25": 250 * time.Millisecond,
		"86400": 2 * time.Minute, "soon": 500 * time.Millisecond, "-5": 500 * time.Millisecond,
		"NaN": 500 * time.Millisecond} {
		s := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, n int) {
			if n == 0 {
				w.Header().Set("Retry-After", header)
				openaitest.Fail(w, 429, "later")
				return
			}
			openaitest.Say(w, r, "x")
		})
		var pauses []time.Duration
		_, _, err := open(t, s.URL, &pauses).Chat(t.Context(), question, anything)
		require.NoError(t, err)
		require.Equal(t, []time.Duration{want}, pauses, header)
	}
}

// A reply of a gigabyte is cut: memory stays bounded.
func TestAReplyOfAGigabyteIsCut(t *testing.T) {
	s := openaitest.New(t, func(w http.ResponseWriter, _ openaitest.Request, _ int) { openaitest.Flood(w, 1<<30) })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, _, err := open(t, s.URL, nil).Chat(t.Context(), question, anything)
	var known *openai.Error
	require.ErrorAs(t, err, &known)
	require.Equal(t, openai.TooLong, known.Kind)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "for three attempts")
}

// A server that repeats what it was sent does not bring the key into replies and errors.
func TestTheKeyStaysOut(t *testing.T) {
	echo := func(status int) openaitest.Answer {
		return func(w http.ResponseWriter, r openaitest.Request, _ int) {
			if status != 200 {
				openaitest.Fail(w, status, "denied: "+r.Authorization)
				return
			}
			openaitest.SayAs(w, r.Authorization, r.Authorization, "stop")
		}
	}
	got, _, err := open(t, openaitest.New(t, echo(200)).URL, nil).Chat(t.Context(), question, anything)
	require.NoError(t, err)
	require.Equal(t, openai.Reply{Content: "Bearer [secret]", Model: "Bearer [secret]", Finish: "stop"}, got)
	for _, status := range []int{401, 400, 500} {
		_, _, err := open(t, openaitest.New(t, echo(status)).URL, nil).Chat(t.Context(), question, anything)
		require.ErrorContains(t, err, "[secret]")
		require.NotContains(t, err.Error(), testKey)
	}
	// An address by reference is a secret too.
	t.Setenv("ROPEWALK_TEST_URL", "http://127.0.0.1:1/token-in-the-path")
	c, err := openai.Open(openai.Server{URL: "${env:ROPEWALK_TEST_URL}", Limit: time.Second, Attempts: 1})
	require.NoError(t, err)
	_, _, err = c.Chat(t.Context(), question, anything)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "token-in-the-path")
}

func TestRepliesThatAreNotAccepted(t *testing.T) {
	s := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, n int) {
		openaitest.Say(w, r, fmt.Sprint("reply ", n))
	})
	c := open(t, s.URL, nil)
	got, attempts, err := c.Chat(t.Context(), question, func(openai.Reply) error { return errors.New("unread") })
	require.EqualError(t, err, "unread")
	require.Equal(t, "reply 2", got.Content, "the last one")
	require.Equal(t, 3, attempts)
	for i, r := range s.Seen() {
		require.Equal(t, uint64(7+i), r.Seed, "each attempt has another seed")
	}
	_, attempts, err = c.Chat(
		t.Context(),
		question,
		func(openai.Reply) error { return openai.Stop(errors.New("no more")) },
	)
	require.EqualError(t, err, "no more")
	require.Equal(t, 1, attempts)
}

func TestACancelledChatEnds(t *testing.T) {
	s := openaitest.New(t, func(w http.ResponseWriter, _ openaitest.Request, _ int) { openaitest.Hang(w, time.Second) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := open(t, s.URL, nil).Chat(ctx, question, anything)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestServersThatCannotBeOpened(t *testing.T) {
	for want, s := range map[string]openai.Server{
		"key: resolve ${env:ROPEWALK_TEST_ABSENT}": {URL: "http://h/v1", Key: "${env:ROPEWALK_TEST_ABSENT}"},
		"url: must be an address":                  {URL: "h/v1"},
	} {
		_, err := openai.Open(s)
		var known *openai.Error
		require.ErrorAs(t, err, &known)
		require.Equal(t, openai.Setup, known.Kind)
		require.ErrorContains(t, err, want)
	}
	field, text := openai.Server{URL: "${env:JUDGE_URL}", Key: "${file:/run/key}"}.Fault()
	require.Empty(t, field+text)
}

// Another server on the way to the address of the recipe would see the key.
func TestARedirectIsNotFollowed(t *testing.T) {
	stolen := false
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen = true }))
	defer thief.Close()
	s := openaitest.New(t, func(w http.ResponseWriter, _ openaitest.Request, _ int) {
		w.Header().Set("Location", thief.URL)
		w.WriteHeader(http.StatusPermanentRedirect)
	})
	_, _, err := open(t, s.URL, nil).Chat(t.Context(), question, anything)
	require.Error(t, err)
	require.False(t, stolen)
}
