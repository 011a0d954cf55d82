package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

// scripted is a server of OpenEnv's protocol. Its episodes end after three steps, of which each pays 0.5.
type scripted struct {
	step     func(ctx context.Context, c *websocket.Conn, n int, action string) // nil = an honest step
	reset    string                                                             // another reply to a reset
	schema   func(w http.ResponseWriter)                                        // nil = 404
	refuse   atomic.Int64                                                       // how many new sessions
	sessions atomic.Int64
	noise    string // shown by resets; %d is the number of the session
	header   atomic.Value
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.header.Store(r.Header.Get("Authorization"))
	switch {
	case r.URL.Path == "/schema" && s.schema != nil:
		s.schema(w)
		return
	case r.URL.Path != "/ws":
		http.NotFound(w, r)
		return
	case s.refuse.Add(-1) >= 0:
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	s.talk(r.Context(), c, int(s.sessions.Add(1)))
}

// talk serves one session.
func (s *scripted) talk(ctx context.Context, c *websocket.Conn, session int) {
	steps := 0
	for {
		_, text, err := c.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			Type string
			Data struct {
				Message string
				Seed    int
			}
		}
		if json.Unmarshal(text, &m) != nil {
			return
		}
		switch m.Type {
		case "reset":
			steps = 0
			shown := fmt.Sprintf("seed %d", m.Data.Seed)
			if s.noise != "" {
				shown = fmt.Sprintf(s.noise, session)
			}
			say(ctx, c, orElse(s.reset, observation(shown, "null", false)))
		case "step":
			if steps++; s.step != nil {
				s.step(ctx, c, steps, m.Data.Message)
			} else {
				say(ctx, c, observation(m.Data.Message, "0.5", steps == 3))
			}
		default:
			return
		}
	}
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

func observation(text, reward string, done bool) string {
	return fmt.Sprintf(`{"type":"observation","data":{"observation":{"text":%q},"reward":%s,"done":%t}}`, text, reward,
		done)
}

func failure(message, code string) string {
	return fmt.Sprintf(`{"type":"error","data":{"message":%q,"code":%q}}`, message, code)
}

func say(ctx context.Context, c *websocket.Conn, text string) {
	_ = c.Write(ctx, websocket.MessageText, []byte(text)) // the client may have gone
}

// against opens the environment against a scripted server.
func against(t *testing.T, s *scripted, more env.Settings) *environment {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	settings := env.Settings{"url": server.URL, "observation": "text"}
	for name, value := range more {
		settings[name] = value
	}
	return openEnv(t, settings)
}

func TestOpenEnvConforms(t *testing.T) {
	e := against(t, &scripted{}, env.Settings{"actions": "left,right"})
	envtest.Run(t, e, envtest.Case{Tasks: 6, Turns: 6, Nonsense: []string{"", "up"}})
}

// Each hostile reply to a step is an error in bounded time and memory, and never a reward.
func TestHostileOpenEnvServers(t *testing.T) {
	shows := func(data string) func(context.Context, *websocket.Conn, int, string) {
		return func(ctx context.Context, c *websocket.Conn, _ int, _ string) {
			say(ctx, c, `{"type":"observation","data":`+data+"}")
		}
	}
	says := func(text string) func(context.Context, *websocket.Conn, int, string) {
		return func(ctx context.Context, c *websocket.Conn, _ int, _ string) { say(ctx, c, text) }
	}
	for name, c := range map[string]struct {
		want string
		step func(context.Context, *websocket.Conn, int, string)
	}{
		"hangs": {"step took too long", func(ctx context.Context, _ *websocket.Conn, _ int, _ string) {
			<-ctx.Done()
		}},
		"dies": {"the session is lost", func(_ context.Context, c *websocket.Conn, _ int, _ string) {
			c.CloseNow()
		}},
		"no JSON":      {"sent no JSON", says("{")},
		"NaN":          {"sent no JSON", says(observation("x", "NaN", false))},
		"infinity":     {"want a finite number", says(observation("x", "1e999", false))},
		"null":         {"sent no reward", says(observation("x", "null", false))},
		"text reward":  {"want a finite number", says(observation("x", `"1"`, false))},
		"no done":      {"lacks observation or done", shows(`{"observation":{},"reward":1}`)},
		"no object":    {"read the OpenEnv server's observation", shows(`{"observation":"x","reward":1,"done":true}`)},
		"other fields": {"has no field text", shows(`{"observation":{"t":1},"reward":1,"done":true}`)},
		"other type":   {"a message of type state", says(`{"type":"state","data":{}}`)},
		"error":        {"reports EXECUTION_ERROR: bang", says(failure("bang", "EXECUTION_ERROR"))},
		"bad error":    {"an error without its form", says(`{"type":"error","data":[]}`)},
		"binary": {"is no text", func(ctx context.Context, c *websocket.Conn, _ int, _ string) {
			_ = c.Write(ctx, websocket.MessageBinary, []byte(observation("x", "1", false)))
		}},
		"long":   {"the observation has 70000 bytes", says(observation(strings.Repeat("x", 70000), "1", false))},
		"nested": {"sent no JSON", says(`{"type":"observation","data":` + strings.Repeat("[", 20000))},
		"100 MB": {"has more than 409600 bytes", func(ctx context.Context, c *websocket.Conn, _ int, _ string) {
			w, err := c.Writer(ctx, websocket.MessageText)
			for i := 0; err == nil && i < 100; i++ {
				_, err = w.Write(make([]byte, 1<<20))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			more := env.Settings{}
			if name == "hangs" {
				more["step_seconds"] = 2.0
			}
			server := &scripted{step: c.step}
			e := against(t, server, more)
			task, state := start(t, e)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := e.Step(t.Context(), state, "x")
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, c.want)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(120<<20), "the test's server writes 100 MiB")
			_, _, err = e.Reset(t.Context(), task)
			require.NoError(t, err)
			require.Zero(t, e.live.alive-1, "a session is still counted")
		})
	}
}

// An episode that never ends has no success, however much it pays.
func TestNeverDone(t *testing.T) {
	e := against(t, &scripted{step: func(ctx context.Context, c *websocket.Conn, _ int, said string) {
		say(ctx, c, observation(said, "true", false))
	}}, nil)
	_, state := start(t, e)
	for range 20 {
		next, got, err := e.Step(t.Context(), state, "on")
		require.NoError(t, err)
		require.True(t, !got.Done && !got.Success && got.Reward == 1)
		state = next
	}
}

// Hostile replies to a reset, and to the question what actions are like.
func TestHostileBeginnings(t *testing.T) {
	flood := func(w http.ResponseWriter) {
		for range 100 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}
	for want, server := range map[string]*scripted{
		"ended before its first action":      {reset: observation("x", "0", true)},
		"FACTORY_ERROR: no maze":             {reset: failure("no maze", "FACTORY_ERROR")},
		"VALIDATION_ERROR":                   {reset: failure("seed?", "VALIDATION_ERROR")},
		"has more than 1048576 bytes":        {schema: flood},
		"actions: invalid":                   {schema: func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }},
		"actions: action: must be an object": {schema: func(w http.ResponseWriter) { fmt.Fprint(w, `{"action":[1]}`) }},
		`lacks the field "to", which the s`: {schema: func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"action":{"properties":{"message":{},"to":{}},"required":["to"]}}`)
		}},
		"headers are sent to the address": {schema: func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://example.invalid/")
			w.WriteHeader(http.StatusFound)
		}},
	} {
		e := against(t, server, env.Settings{"step_seconds": 2.0})
		task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
		require.NoError(t, err)
		_, _, err = e.Reset(t.Context(), task)
		require.ErrorContains(t, err, want)
		require.Zero(t, e.live.alive)
	}
}

// A server closes its sessions and is away for a moment. A new session repeats the episode.
func TestALostConnectionIsRepeated(t *testing.T) {
	server := &scripted{}
	server.step = func(ctx context.Context, c *websocket.Conn, n int, said string) {
		if n == 2 && server.sessions.Load() == 1 {
			server.refuse.Store(3)
			c.CloseNow()
			return
		}
		say(ctx, c, observation(said, "0.5", n == 3))
	}
	e := against(t, server, nil)
	_, state := start(t, e)
	var got env.Transition
	var err error
	for _, said := range []string{"a", "b", "c"} {
		state, got, err = e.Step(t.Context(), state, said)
		require.NoError(t, err)
		text, _ := got.Observation.Text()
		require.Equal(t, said, text)
	}
	require.True(t, got.Done && got.Success)
	require.EqualValues(t, 2, server.sessions.Load())

	other := against(t, &scripted{noise: "session %d"}, nil)
	_, state = start(t, other)
	other.live.closeAll()
	_, _, err = other.Step(t.Context(), state, "a")
	require.ErrorIs(t, err, ErrDiffers)
}

// A message that was not asked for would be taken for the reply to the next request.
func TestUnaskedMessages(t *testing.T) {
	e := against(t, &scripted{step: func(ctx context.Context, c *websocket.Conn, _ int, said string) {
		say(ctx, c, observation(said, "0", false))
		say(ctx, c, observation("more", "1", false))
	}}, nil)
	_, state := start(t, e)
	state, got, err := e.Step(t.Context(), state, "a")
	require.NoError(t, err)
	require.Zero(t, got.Reward)
	e.live.mu.Lock()
	session := e.live.oldest().session.(*socket)
	e.live.mu.Unlock()
	require.Eventually(t, func() bool { // the other message has come, perhaps while the first one was there
		select {
		case <-session.gone:
			return true
		default:
			return len(session.replies) == 1
		}
	}, hangs, time.Millisecond)
	_, _, err = e.Step(t.Context(), state, "b")
	require.ErrorContains(t, err, "was not asked for")
}

// Secrets reach the server, and neither errors nor observations.
func TestOpenEnvSecrets(t *testing.T) {
	t.Setenv("OPENENV_TEST_TOKEN", "s3cret-token")
	server := &scripted{step: func(ctx context.Context, c *websocket.Conn, n int, _ string) {
		if n == 1 {
			say(ctx, c, observation("you sent s3cret-token", "0", false))
		} else {
			say(ctx, c, failure("s3cret-token is bad", "X"))
		}
	}}
	e := against(t, server, env.Settings{"headers": `["Authorization=Bearer ${env:OPENENV_TEST_TOKEN}"]`})
	_, state := start(t, e)
	require.Equal(t, "Bearer s3cret-token", server.header.Load())
	state, got, err := e.Step(t.Context(), state, "a")
	require.NoError(t, err)
	text, _ := got.Observation.Text()
	require.Equal(t, "you sent [secret]", text)
	_, _, err = e.Step(t.Context(), state, "b")
	require.ErrorContains(t, err, "[secret] is bad")
}

// A server that no one reaches fails in the time of one try, and then at once.
func TestAServerThatIsNotThere(t *testing.T) {
	e := openEnv(t, env.Settings{"url": "http://127.0.0.1:1"})
	task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
	require.NoError(t, err)
	for range 2 { // the second in a row
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, _, err = e.Reset(ctx, task)
		cancel()
		require.ErrorContains(t, err, "the OpenEnv server is away")
	}
	_, _, err = e.Reset(t.Context(), task)
	require.ErrorContains(t, err, "the OpenEnv server died 2 times in a row; the next start is at")
}
