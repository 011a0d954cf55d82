package servers_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// A server that is killed in mid-generation loses its unfinished rows alone: they go to another server, with the same
// seeds.
func TestKilledInMidGeneration(t *testing.T) {
	dir := policyDir(t, 1)
	a, b := newFake(t, servers.KindRopewalk), newFake(t, servers.KindRopewalk)
	s := open(t, all(a, b)...)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	want, err := s.Generate(t.Context(), rows(60, 12))
	require.NoError(t, err)
	dead := make(chan struct{}) // until then the other server answers nothing
	b.set(func(http.ResponseWriter, *http.Request, int64) bool { <-dead; return false })
	asked, third := a.asked.Load()+b.asked.Load(), a.asked.Load()+3
	var dies sync.Once
	a.set(func(w http.ResponseWriter, r *http.Request, n int64) bool {
		if n < third {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // only then does the handler learn that its connection is closed
		dies.Do(func() {
			go func() {
				a.kill()
				close(dead)
			}()
		})
		<-r.Context().Done()
		return true
	})
	got, err := s.Generate(t.Context(), rows(60, 12))
	require.NoError(t, err)
	require.Equal(t, want, got)
	again := a.asked.Load() + b.asked.Load() - asked - 60
	require.LessOrEqual(t, again, int64(4), "no more than the rows in flight are asked for again")
	require.ErrorContains(t, s.Away(), a.url)
	require.ErrorContains(t, s.Load(t.Context(), policy.RolePolicy, filepath.Join(t.TempDir(), "none"), false), "none")
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 2), false), "the dead server is left out")
}

// Rows that are finished when the last server is lost are not asked for again.
func TestFinishedRowsAreKept(t *testing.T) {
	dir := policyDir(t, 1)
	a := newFake(t, servers.KindRopewalk)
	s := open(t, all(a)...)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	var broken atomic.Bool
	broken.Store(true)
	a.set(func(w http.ResponseWriter, r *http.Request, n int64) bool {
		if broken.Load() && n > 20 {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	_, err := s.Generate(t.Context(), rows(30, 4))
	require.ErrorIs(t, err, policy.ErrLost)
	broken.Store(false)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	asked := a.asked.Load()
	g, err := s.Generate(t.Context(), rows(30, 4))
	require.NoError(t, err)
	require.Len(t, g.Tokens, 30)
	require.Less(t, a.asked.Load()-asked, int64(20))
}

// The bounds of a server hold: rows at once, and tokens of their prompts and budgets.
func TestBounds(t *testing.T) {
	dir := policyDir(t, 1)
	a := newFake(t, servers.KindRopewalk)
	for name, c := range map[string]struct {
		parallel, tokens int
		most             int64
	}{
		"rows": {3, 0, 3}, "tokens": {50, 30, 4}, "a row beyond the budget goes alone": {50, 2, 1},
	} {
		settings := a.settings()
		settings.Parallel, settings.Tokens = c.parallel, c.tokens
		s := open(t, settings)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
		require.Equal(t, c.most, mostAtOnce(t, a, s, c.most), name)
	}
}

// mostAtOnce returns the largest number of 40 requests that a server held at once. The server answers none before it
// holds as many as wanted.
func mostAtOnce(t *testing.T, a *fake, s *servers.Sampler, want int64) int64 {
	t.Helper()
	a.most.Store(0)
	release, done := make(chan struct{}), make(chan error, 1)
	a.set(func(http.ResponseWriter, *http.Request, int64) bool { <-release; return false })
	go func() {
		_, err := s.Generate(t.Context(), rows(40, 4))
		done <- err
	}()
	require.Eventually(t, func() bool { return a.most.Load() >= want }, 5*time.Minute, time.Millisecond)
	close(release)
	require.NoError(t, <-done)
	a.set(nil)
	return a.most.Load()
}

// A sequence that only a lost server takes is no fault of the request or of its rows: the server may come back. One
// that no server takes is refused.
func TestASequenceForALostServer(t *testing.T) {
	dir := policyDir(t, 1)
	long, short := newFake(t, servers.KindRopewalk), newFake(t, servers.KindRopewalk)
	short.context = 32
	s := open(t, all(long, short)...)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	_, err := s.Generate(t.Context(), rows(2, 64))
	require.NoError(t, err)
	_, err = s.Generate(t.Context(), rows(2, shape.Positions))
	require.ErrorIs(t, err, policy.ErrBadRequest)
	long.kill()
	_, err = s.Generate(t.Context(), rows(2, 65))
	require.ErrorIs(t, err, policy.ErrLost, "the server is lost with the row")
	require.ErrorContains(t, s.Away(), long.url)
	_, err = s.Generate(t.Context(), rows(2, 66))
	require.ErrorIs(t, err, policy.ErrLost)
	require.NotErrorIs(t, err, policy.ErrBadRequest)
	require.ErrorContains(t, err, "a prefix of 3 tokens and a budget of 66; longer ones than 32 are away")
	_, err = s.Generate(t.Context(), rows(2, 8))
	require.NoError(t, err, "shorter ones go on")
}

// A storm of 429 slows the sampler down, and loses nothing once it is over.
func TestThrottledForAWhile(t *testing.T) {
	dir := policyDir(t, 1)
	a := newFake(t, servers.KindRopewalk)
	s := open(t, all(a)...)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	var left atomic.Int64
	left.Store(25)
	a.set(func(w http.ResponseWriter, r *http.Request, n int64) bool {
		if n > 0 && left.Add(-1) >= 0 {
			status(429, "Retry-After", "0.01")(w)
			return true
		}
		return false
	})
	_, err := s.Generate(t.Context(), rows(30, 4))
	require.NoError(t, err)
	require.NoError(t, s.Away())
}

// A cancelled request ends at once, and Close ends requests that run.
func TestRequestsEnd(t *testing.T) {
	dir := policyDir(t, 1)
	a := newFake(t, servers.KindRopewalk)
	s := open(t, all(a)...)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	arrived := make(chan struct{}, 9)
	a.set(func(w http.ResponseWriter, r *http.Request, n int64) bool {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the handler learn that its client has gone
		arrived <- struct{}{}
		<-r.Context().Done()
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	await := func(then func()) {
		for range 3 {
			<-arrived
		}
		then()
	}
	go await(cancel)
	_, err := s.Generate(ctx, rows(3, 4))
	require.ErrorIs(t, err, context.Canceled)
	go await(func() { s.Close() })
	_, err = s.Generate(t.Context(), rows(3, 4))
	require.ErrorIs(t, err, policy.ErrLost)
}

// Servers that answer 200 and keep their values are found out, and get no requests.
func TestStaleWeights(t *testing.T) {
	for _, kind := range []string{servers.KindRopewalk, servers.KindLlama, servers.KindVLLM, servers.KindSGLang} {
		t.Run(kind, func(t *testing.T) {
			a := newFake(t, kind)
			s := open(t, all(a)...)
			first, second := policyDir(t, 1), policyDir(t, 2)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, first, false))
			before, err := s.State(t.Context(), policy.RolePolicy)
			require.NoError(t, err)
			a.keeps = true
			err = s.Load(t.Context(), policy.RolePolicy, second, false)
			require.ErrorIs(t, err, policy.ErrWrongVersion)
			var m *servers.Mismatch
			require.ErrorAs(t, err, &m)
			require.True(t, m.Old)
			require.ErrorContains(t, err, a.url)
			require.ErrorContains(t, err, "it still serves the version before; at token")
			require.Regexp(t, `expected -\d+\.\d+, got -\d+\.\d+`, err.Error())
			now, err := s.State(t.Context(), policy.RolePolicy)
			require.NoError(t, err)
			require.Equal(t, before, now)
			_, err = s.Generate(t.Context(), rows(1, 4))
			require.ErrorIs(t, err, policy.ErrLost, "a server without the version gets no request")
			a.keeps = false
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, second, false))
			_, err = s.Generate(t.Context(), rows(1, 4))
			require.NoError(t, err)
		})
	}
}

// vLLM does not reload an output head that it shares with the embedding: the probe finds it out, and the error says how
// to start vLLM.
func TestTiedEmbeddings(t *testing.T) {
	a := newFake(t, servers.KindVLLM)
	a.tied = true
	s := open(t, all(a)...)
	err := s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false)
	require.ErrorIs(t, err, policy.ErrWrongVersion)
	require.ErrorContains(t, err, "start it from a folder with tie_word_embeddings false (export --checkpoint writes "+
		"one with --untied)")
	a.tied = false
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
}

// A server without a folder serves what it has: another policy is refused with both values.
func TestFixedWeights(t *testing.T) {
	a := newFake(t, servers.KindVLLM)
	settings := a.settings()
	settings.Folder = ""
	s := open(t, settings)
	require.False(t, s.Capabilities().Has(policy.NeedNewWeights))
	err := s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false)
	require.ErrorIs(t, err, policy.ErrWrongVersion)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 99), false))
}

// TensorRT-LLM scores no given tokens: what it says about its own draws is compared, so that another model is found
// out. It cannot train, and names the reason.
func TestTensorRT(t *testing.T) {
	a := newFake(t, servers.KindTensorRT)
	s := open(t, all(a)...)
	can := s.Capabilities()
	require.True(t, can.Has(policy.NeedTokenIDs))
	require.True(t, can.Has(policy.NeedLogProbs))
	require.False(t, can.Has(policy.NeedNewWeights))
	require.Zero(t, can.TopLogProbs)
	err := s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false)
	require.ErrorIs(t, err, policy.ErrWrongVersion)
	require.ErrorContains(t, err, "it serves another model; start trtllm-serve with this one")
	dir := policyDir(t, 99)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	g, err := s.Generate(t.Context(), rows(12, 20))
	require.NoError(t, err)
	checkModel(t, dir, rows(12, 20), g)
	g, err = s.Generate(t.Context(), rows(12, 20, 5, 6, 7, 8))
	require.NoError(t, err)
	require.Contains(t, g.Finish, policy.FinishStop)
	settings := a.settings()
	settings.Folder = "/weights"
	field, text := settings.Fault()
	require.Equal(t, "folder", field)
	require.Contains(t, text, "it evaluates and cannot train")
}

// Only the version that is served stays in the folder.
func TestFolder(t *testing.T) {
	for _, kind := range []string{servers.KindRopewalk, servers.KindLlama, servers.KindVLLM, servers.KindSGLang} {
		a := newFake(t, kind)
		s := open(t, all(a)...)
		for seed := range uint64(3) {
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, seed), false))
			entries, err := os.ReadDir(a.folder)
			require.NoError(t, err)
			require.Len(t, entries, 1, kind)
		}
	}
}

// Log-probabilities of the model at another temperature than 1 are not those of what was sampled: such a server offers
// the temperatures 0 and 1 alone.
func TestKindOfLogProbs(t *testing.T) {
	for _, kind := range []string{servers.KindVLLM, servers.KindSGLang} {
		for _, raw := range []bool{false, true} {
			a := newFake(t, kind)
			a.raw = raw
			s := open(t, all(a)...)
			require.Equal(t, !raw, s.Capabilities().Temperature, "%s %v", kind, raw)
			require.True(t, s.Capabilities().Has(policy.NeedGreedy))
			require.Equal(t, raw, s.Facts()[0].LogProbs == servers.LogProbsModel)
			require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
			for _, temperature := range []float64{0, 1, 0.7} {
				req := rows(2, 4)
				req.Temperature = temperature
				_, err := s.Generate(t.Context(), req)
				if raw && temperature == 0.7 {
					require.ErrorIs(t, err, policy.ErrBadRequest)
					continue
				}
				require.NoError(t, err)
			}
		}
	}
}
