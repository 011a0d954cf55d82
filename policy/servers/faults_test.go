package servers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// reply is a response in the form of ropewalk serve, with parts that a test replaces.
func reply(changes ...string) string {
	out := `{"model":"m","ropewalk":{"weights":"WEIGHTS"},"choices":[{"finish_reason":"stop","token_ids":[1,2,3,4],` +
		`"logprobs":{"token_logprobs":[-1,-2,-1,-2]},"entropies":[1,1,1,1]}]}`
	return strings.NewReplacer(changes...).Replace(out)
}

func say(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { io.WriteString(w, text) }
}

func status(code int, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"message":"reason %d"}}`, code)
	}
}

// hang lasts until the client gives up.
func hang(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_, _ = io.Copy(io.Discard, c)
}

func drop(w http.ResponseWriter) { panic(http.ErrAbortHandler) }

func cut(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "10000")
	io.WriteString(w, reply()[:40])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// flood sends a gigabyte, or as much as the client takes.
func flood(w http.ResponseWriter) {
	io.WriteString(w, `{"model":"`)
	chunk := strings.Repeat("x", 1<<20)
	for range 1 << 10 {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}

// faults are what a server may do instead of answering, what the error then says, and which error it is (nil: one
// that may be the fault of a row).
var faults = []struct {
	name   string
	answer func(http.ResponseWriter)
	says   string
	is     error
}{
	{"garbage", say("<html>welcome</html>"), "is not the JSON that was expected", policy.ErrLost},
	{"partial JSON", say(reply()[:90]), "is not the JSON that was expected", policy.ErrLost},
	{"nothing", say(`{}`), `its reply is by weights , want`, policy.ErrLost},
	{"no choice", say(reply(`[{"finish_reason"`, `[],"x":[{"finish_reason"`)), "0 choices", policy.ErrLost},
	{"no ids", say(reply(`"token_ids":[1,2,3,4],`, ``)), "0 tokens, want 1 to 4", policy.ErrLost},
	{"too many ids", say(reply(`[1,2,3,4]`, `[1,2,3,4,5]`)), "5 tokens, want 1 to 4", policy.ErrLost},
	{"too few ids", say(reply(`[1,2,3,4]`, `[1,2,3]`)), "ends after 3 of 4 tokens", policy.ErrLost},
	{"beyond the stop token", say(reply(`[1,2,3,4]`, `[1,7,3,4]`)), "goes on for 2 tokens after", policy.ErrLost},
	{"wrong count", say(reply(`[-1,-2,-1,-2]`, `[-1,-2]`)), "4 tokens and 2 numbers", policy.ErrLost},
	{"null", say(reply(`[-1,-2,-1,-2]`, `[-1,null,-1,-2]`)), "no log-probability of token 1", policy.ErrLost},
	{"id out of range", say(reply(`[1,2,3,4]`, `[1,2,40,4]`)), "token 2 is 40, the vocabulary has 40", policy.ErrLost},
	{"negative id", say(reply(`[1,2,3,4]`, `[-1,2,3,4]`)), "token 0 is -1", policy.ErrLost},
	{"huge id", say(reply(`[1,2,3,4]`, `[99999999999,2,3,4]`)), "is not the JSON", policy.ErrLost},
	{"NaN", say(reply(`[-1,-2`, `[NaN,-2`)), "is not the JSON", policy.ErrLost},
	{"infinity", say(reply(`[-1,-2`, `[-1e99,-2`)), "is not the JSON", policy.ErrLost},
	{"positive", say(reply(`[-1,-2`, `[0.5,-2`)), "the log-probability of token 0 is 0.5", policy.ErrLost},
	{"entropy", say(reply(`"entropies":[1`, `"entropies":[9`)), "the entropy of token 0 is 9", policy.ErrLost},
	{"another model", say(reply(`"m"`, `"gpt"`)), `by model "gpt", want m`, policy.ErrLost},
	{"another version", say(reply("WEIGHTS", "dead")), "by weights dead", policy.ErrLost},
	{"throttled", status(429, "Retry-After", "0.01"), "throttled: it answers 429", nil},
	{"failing", status(503, "Retry-After", "0.01"), "failing: it answers 503", policy.ErrLost},
	{"rejected", status(400), "rejected: it answers 400 Bad Request: reason 400", nil},
	{"denied", status(401), "denied: it answers 401", policy.ErrLost},
	{"gone", status(404), "not found", policy.ErrLost},
	{"redirect", status(302, "Location", "http://127.0.0.1:9/"), "not found: it answers 302", policy.ErrLost},
	{"hang", hang, "no whole reply in 2s", policy.ErrLost},
	{"drop", drop, "broken", policy.ErrLost},
	{"cut", cut, "broken", policy.ErrLost},
	{"flood", flood, "its reply has more than", policy.ErrLost},
}

// fault makes a server do that with every request for a response.
func (f *fake) fault(answer func(http.ResponseWriter)) {
	f.set(func(w http.ResponseWriter, r *http.Request, n int64) bool {
		if n < 0 || f.serving.Load() == 0 {
			return false
		}
		answer(w)
		return true
	})
}

func rows(n, budget int, stop ...int32) policy.GenerateRequest {
	req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 1, Stop: stop}
	for i := range n {
		req.Prefixes = append(req.Prefixes, []int32{1, int32(i % 40), 3})
		req.Streams = append(req.Streams, uint64(i)<<40+5)
		req.MaxTokens = append(req.MaxTokens, budget)
	}
	return req
}

// Whatever a server answers, the error says which server, what and why, in bounded time and memory; and with another
// server next to it nothing is lost.
func TestFaults(t *testing.T) {
	dir := policyDir(t, 1)
	healthy := newFake(t, servers.KindRopewalk)
	alone := open(t, all(healthy)...)
	require.NoError(t, alone.Load(t.Context(), policy.RolePolicy, dir, false))
	want, err := alone.Generate(t.Context(), rows(6, 4, 7))
	require.NoError(t, err)
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			bad := newFake(t, servers.KindRopewalk)
			settings := bad.settings()
			if c.name == "hang" {
				settings.Seconds = 2
			}
			s := open(t, settings)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
			state, err := s.State(t.Context(), policy.RolePolicy)
			require.NoError(t, err)
			bad.fault(func(w http.ResponseWriter) { c.answer(named{w, state.Digest}) }) // unless the fault is the name
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			asked := bad.asked.Load()
			_, err = s.Generate(ctx, rows(1, 4, 7))
			runtime.ReadMemStats(&after)
			require.NoError(t, ctx.Err())
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "ropewalk "+bad.url)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			} else {
				require.NotErrorIs(t, err, policy.ErrLost)
			}
			require.LessOrEqual(t, bad.asked.Load()-asked, int64(61), "requests")
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "bytes")

			both := open(t, settings, healthy.settings())
			bad.set(nil)
			require.NoError(t, both.Load(t.Context(), policy.RolePolicy, dir, false))
			bad.fault(func(w http.ResponseWriter) { c.answer(named{w, state.Digest}) })
			if c.name == "rejected" { // the row's own fault: another server is not asked
				return
			}
			got, err := both.Generate(ctx, rows(6, 4, 7))
			require.NoError(t, err)
			require.Equal(t, want, got, "the other server answers with the same tokens")
		})
	}
}

// named writes the digest of the weights into what is written.
type named struct {
	http.ResponseWriter
	digest string
}

// Write implements io.Writer.
func (w named) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write([]byte(strings.ReplaceAll(string(p), "WEIGHTS", w.digest)))
	return len(p), err
}

// WriteString implements io.StringWriter.
func (w named) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Unwrap is for http.ResponseController.
func (w named) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w named) Flush() { w.ResponseWriter.(http.Flusher).Flush() }
