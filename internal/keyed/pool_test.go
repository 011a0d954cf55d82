package keyed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errClosed = errors.New("closed")

// held is what seats hold in these tests: the number of their uses.
type held struct{ uses int }

func newPool(most int) (*Pool[held], *atomic.Int64) {
	var ended atomic.Int64
	return &Pool[held]{Most: most, Idle: time.Minute, Closed: errClosed, End: func(*held) { ended.Add(1) }}, &ended
}

// use takes the turn of a seat once, and returns how often it has been used.
func use(t *testing.T, p *Pool[held], key string) int {
	t.Helper()
	s, err := p.Enter(t.Context(), key)
	require.NoError(t, err)
	defer p.Leave(s)
	s.Held.uses++
	return s.Held.uses
}

func TestASeatKeepsWhatItHolds(t *testing.T) {
	p, ended := newPool(8)
	require.NoError(t, p.Forget(t.Context(), "x"), "a key without a seat is no error")
	require.Equal(t, 1, use(t, p, "x"))
	require.Equal(t, 1, use(t, p, "y"))
	require.Equal(t, 2, use(t, p, "x"))
	require.NoError(t, p.Forget(t.Context(), "x"))
	require.EqualValues(t, 1, ended.Load())
	require.Equal(t, 1, p.Len())
	require.Equal(t, 1, use(t, p, "x"))
	p.Close()
	p.Close()
	require.EqualValues(t, 3, ended.Load())
	require.Zero(t, p.Len())
	_, err := p.Enter(t.Context(), "x")
	require.ErrorIs(t, err, errClosed)
	require.NoError(t, p.Forget(t.Context(), "x"))
}

func TestTheSeatThatIsIdleLongestMakesRoom(t *testing.T) {
	p, _ := newPool(2)
	for _, key := range []string{"x", "y", "x", "z"} {
		use(t, p, key)
	}
	require.Equal(t, 3, use(t, p, "x"))
	require.Equal(t, 1, use(t, p, "y"))
	p.Full = errors.New("full")
	_, err := p.Enter(t.Context(), "z")
	require.ErrorIs(t, err, p.Full)
	p.Close()
}

func TestIdleSeatsAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ended := newPool(2)
		use(t, p, "x")
		s, err := p.Enter(t.Context(), "x")
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, p.Len(), "it is in use")
		p.Leave(s)
		time.Sleep(time.Minute + time.Second)
		require.Zero(t, p.Len())
		require.EqualValues(t, 1, ended.Load())
	})
}

func TestAWaitEndsWithTheContextOrTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPool(1)
		s, err := p.Enter(t.Context(), "x")
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, key := range []string{"x", "y"} {
			_, err = p.Enter(short, key)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.ErrorIs(t, p.Forget(short, "x"), context.DeadlineExceeded)
		var wait sync.WaitGroup
		wait.Go(func() { use(t, p, "y") })
		synctest.Wait()
		p.Leave(s)
		wait.Wait()
		s, err = p.Enter(t.Context(), "y")
		require.NoError(t, err)
		wait.Go(func() {
			_, err := p.Enter(context.Background(), "z")
			require.ErrorIs(t, err, errClosed)
		})
		wait.Go(p.Close)
		synctest.Wait()
		require.Equal(t, 1, p.Len(), "Close awaits the turn")
		p.Leave(s)
		wait.Wait()
		require.Zero(t, p.Len())
	})
}
