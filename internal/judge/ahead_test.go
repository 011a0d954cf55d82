package judge

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/openaitest"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// What has begun is not asked again, broken answers included, and no more than the setting allows is asked at once.
func TestAskTakesWhatHasBegun(t *testing.T) {
	var now, most atomic.Int64
	release := make(chan struct{})
	s := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, _ int) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		<-release
		reply := norwick(r.User())
		if strings.Contains(r.User(), "\npoison\n") {
			reply = "Well…"
		}
		openaitest.Say(w, r, reply)
	})
	j := open(t, s, nil, func(s *Settings) { s.Seconds, s.Concurrency, s.Attempts = 60, 2, 1 })
	for _, q := range ask("In Norwick", "poison", "In Seldon", "In Norwick") {
		j.Begin(t.Context(), q)
	}
	require.Eventually(t, func() bool { return now.Load() == 2 }, time.Minute, time.Millisecond)
	close(release)
	got, err := j.Ask(t.Context(), ask("In Seldon", "poison", "In Talland", "In Norwick"), nil)
	require.NoError(t, err)
	require.Equal(t, []reward.Judgement{reward.Mismatch, "", reward.Mismatch, reward.Match},
		[]reward.Judgement{got[0].Verdict, got[1].Verdict, got[2].Verdict, got[3].Verdict})
	require.ErrorContains(t, got[1].Broken, "neither Match nor Mismatch")
	require.Len(t, s.Seen(), 4, "each once")
	require.LessOrEqual(t, most.Load(), int64(2))
}

// A judge that is away ends what begins early. Ask meets its error by itself, or its answers if it is back.
func TestNothingBeginsAtAJudgeThatIsAway(t *testing.T) {
	var back atomic.Bool
	s := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, _ int) {
		if back.Load() {
			openaitest.Say(w, r, norwick(r.User()))
			return
		}
		w.Header().Set("Retry-After", "0.01")
		openaitest.Fail(w, 429, "busy")
	})
	j := open(t, s, nil, func(s *Settings) { s.Concurrency, s.Attempts = 1, 1 })
	for _, q := range ask("In Norwick", "In Seldon", "In Talland") {
		j.Begin(t.Context(), q)
	}
	j.asking.Wait()
	require.Len(t, s.Seen(), 1)
	j.Begin(t.Context(), ask("In Selmark")[0])
	j.asking.Wait()
	require.Len(t, s.Seen(), 1)
	_, err := j.Ask(t.Context(), ask("In Norwick", "In Seldon"), nil)
	require.ErrorIs(t, err, ErrAway)
	back.Store(true)
	got, err := j.Ask(t.Context(), ask("In Norwick", "In Selmark"), nil)
	require.NoError(t, err)
	require.Equal(t, reward.Match, got[0].Verdict)
}
