package servers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// A server that has stopped answering keeps no row, and gets no more than it may have at once: the scheduler notices
// that it is slower than the others and takes its rows off.
func TestRowsAreTakenOffAStraggler(t *testing.T) {
	dir := policyDir(t, 1)
	fast, stopped := newFake(t, servers.KindRopewalk), newFake(t, servers.KindRopewalk)
	s := open(t, all(fast, stopped)...)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, dir, false))
	want, err := s.Generate(t.Context(), rows(40, 4))
	require.NoError(t, err)
	release := make(chan struct{})
	defer close(release)
	stopped.set(func(w http.ResponseWriter, r *http.Request, n int64) bool {
		<-release
		return false
	})
	before := stopped.asked.Load()
	got, err := s.Generate(t.Context(), rows(40, 4))
	require.NoError(t, err, "while the server is stopped")
	require.LessOrEqual(t, stopped.asked.Load()-before, int64(4))
	require.Equal(t, want, got)
	require.Positive(t, s.Stats().Rescued)
	require.NoError(t, s.Away(), "a slow server is not drained")
}

// A turn that continues a sequence is asked of the server that has it in its cache.
func TestTurnsStayWithTheirPrefixes(t *testing.T) {
	a, b := newFake(t, servers.KindRopewalk), newFake(t, servers.KindRopewalk)
	s := open(t, all(a, b)...)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
	first, err := s.Generate(t.Context(), rows(2, 6)) // one on each
	require.NoError(t, err)
	for _, row := range []int{1, 0, 0, 1} {
		asked := [2]int64{a.asked.Load(), b.asked.Load()}
		req := rows(2, 6)
		req.Prefixes = [][]int32{append(append(req.Prefixes[row], first.Tokens[row]...), 7, 8)}
		req.Streams, req.MaxTokens = req.Streams[:1], []int{3}
		_, err = s.Generate(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, [2]int64{int64(1 - row), int64(row)}, [2]int64{a.asked.Load() - asked[0],
			b.asked.Load() - asked[1]})
	}
	require.Zero(t, s.Stats().Moved)
}

// A row that is longer than a server's context goes to another server, and a row that is longer than those of all
// servers left is an error that says so.
func TestRowsThatAreTooLongForAServer(t *testing.T) {
	short, long := newFake(t, servers.KindRopewalk), newFake(t, servers.KindRopewalk)
	short.context = 32
	s := open(t, all(short, long)...)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
	req := rows(12, 4)
	for i := range 6 {
		req.MaxTokens[i] = 60
	}
	asked := short.asked.Load()
	g, err := s.Generate(t.Context(), req)
	require.NoError(t, err)
	require.Len(t, g.Tokens[0], 60)
	require.LessOrEqual(t, short.asked.Load()-asked, int64(6))
	long.kill()
	_, err = s.Generate(t.Context(), req)
	require.ErrorContains(t, err, "no server in use takes the row: a prefix of 3 tokens and a budget of 60")
	_, err = s.Generate(t.Context(), rows(6, 4))
	require.NoError(t, err)
}

// What the KV cache of a server holds bounds what it is asked for at once, without a setting.
func TestCapacityInTokens(t *testing.T) {
	a := newFake(t, servers.KindRopewalk)
	a.cache = 30
	settings := a.settings()
	settings.Parallel = 50
	s := open(t, settings)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
	require.Equal(t, 30, s.Facts()[0].Tokens)
	require.Equal(t, policy.Room{Rows: 50, Tokens: 30}, s.Room())
	require.Equal(t, int64(4), mostAtOnce(t, a, s, 4))
}

// While both wait, rows of training get most of the room, and rows of an evaluation some.
func TestTrainingGoesBeforeEvaluation(t *testing.T) {
	a := newFake(t, servers.KindRopewalk)
	settings := a.settings()
	settings.Parallel = 1
	s := open(t, settings)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
	release := make(chan struct{})
	var order []bool // of the requests: of training
	a.set(func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
		<-release
		var row struct{ Seed uint64 }
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &row))
		order = append(order, row.Seed >= 100) // one request at a time
		r.Body = io.NopCloser(bytes.NewReader(text))
		return false
	})
	var all sync.WaitGroup
	begin := func(evaluation bool, stream int) {
		req := rows(1, 4)
		req.Streams[0], req.Evaluation = uint64(stream), evaluation
		all.Go(func() {
			_, err := s.Generate(t.Context(), req)
			require.NoError(t, err)
		})
	}
	for i := range 40 {
		begin(true, i)
	}
	require.Eventually(t, func() bool { return s.Waiting() == 39 }, 5*time.Minute, time.Millisecond)
	for i := range 40 {
		begin(false, 100+i)
	}
	require.Eventually(t, func() bool { return s.Waiting() == 79 }, 5*time.Minute, time.Millisecond)
	close(release)
	all.Wait()
	require.Len(t, order, 80)
	trained := 0
	for _, training := range order[:50] {
		if training {
			trained++
		}
	}
	require.InDelta(t, 40, trained, 2, "of the first 50 requests, 4 of 5 are of training, though they came last")
}
