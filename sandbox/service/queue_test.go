package service

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// put pushes a job of one byte, for which it reserves room.
func put(t *testing.T, q *queue, l *receiver, key string, life time.Duration) *job {
	t.Helper()
	size, err := q.reserve(t.Context(), l.client, l.client.quota.Load(), 1)
	require.NoError(t, err)
	now := time.Now()
	j := &job{key: key, receiver: l, size: size, quota: l.client.quota.Load(), arrived: now, expires: now.Add(life)}
	q.push(j)
	return j
}

func keys(q *queue, n int) (out []string) {
	for range n {
		out = append(out, q.pop().key)
	}
	return out
}

func TestReceiversTakeTurns(t *testing.T) {
	q := newQueue(100)
	one := newClient("one", Quota{}, nil)
	a, b, c := &receiver{client: one}, &receiver{client: one}, &receiver{client: one}
	for i := range 4 {
		put(t, q, a, fmt.Sprint("a", i), time.Minute)
	}
	put(t, q, b, "b0", time.Minute)
	require.Equal(t, []string{"a0", "b0"}, keys(q, 2))
	put(t, q, c, "c0", time.Minute)
	put(t, q, c, "c1", time.Minute)
	require.Equal(t, []string{"c0", "a1", "c1", "a2", "a3"}, keys(q, 5))
	jobs, bytes := q.depth()
	require.Zero(t, jobs)
	require.Zero(t, bytes)
}

func TestAReceiverThatIsNotReadWaits(t *testing.T) {
	synctest.Test(t, testAReceiverThatIsNotReadWaits)
}

func testAReceiverThatIsNotReadWaits(t *testing.T) {
	q := newQueue(100)
	one := newClient("one", Quota{}, nil)
	slow, other := &receiver{client: one, deliver: func(answer) {}}, &receiver{client: one}
	slow.send(answer{result: sandbox.Result{Stdout: string(make([]byte, mostHeld+1))}})
	put(t, q, slow, "s", time.Minute)
	put(t, q, other, "o", time.Minute)
	require.Equal(t, []string{"o"}, keys(q, 1))
	popped := make(chan string, 1)
	go func() { popped <- q.pop().key }()
	synctest.Wait()
	require.Empty(t, popped)
	slow.held.Store(0)
	q.wake()
	require.Equal(t, "s", <-popped)
}

func TestJobsExpireAndAreDropped(t *testing.T) {
	q := newQueue(100)
	l := &receiver{client: newClient("one", Quota{}, nil)}
	put(t, q, l, "kept", time.Hour)
	put(t, q, l, "short", time.Minute)
	gone := put(t, q, l, "gone", time.Hour)
	put(t, q, l, "last", 2*time.Hour)
	require.True(t, q.drop(gone))
	require.False(t, q.drop(gone))
	require.Empty(t, q.expired(gone.arrived))
	over := q.expired(gone.arrived.Add(2 * time.Minute))
	require.Len(t, over, 1)
	require.Equal(t, "short", over[0].key)
	jobs, bytes := q.depth()
	require.Equal(t, 2, jobs)
	require.EqualValues(t, 2, bytes)
	require.Equal(t, []string{"kept", "last"}, keys(q, 2))
	require.False(t, q.drop(over[0]))
	q.close()
	require.Nil(t, q.pop())
}

func TestRoom(t *testing.T) {
	q := newQueue(10)
	one := newClient("one", Quota{}, nil)
	part := one.quota.Load()
	all, err := q.reserve(t.Context(), one, part, 50)
	require.NoError(t, err)
	require.EqualValues(t, 10, all, "a size above the capacity takes all of it")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = q.reserve(ctx, one, part, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	q.release(part, all)
	_, err = q.reserve(t.Context(), one, part, 1)
	require.NoError(t, err)
}

func TestVerdictsAreKeptWithinBounds(t *testing.T) {
	a := newAnswers(3*(overhead+10), time.Minute)
	var got []answer
	l := &receiver{deliver: func(x answer) { got = append(got, x) }}
	now := time.Now()
	settle := func(key string, err error) {
		j := &job{key: key, digest: key, receiver: l}
		require.True(t, a.enter(j), key)
		a.settle(j, answer{key: key, err: err, result: sandbox.Result{Stdout: "0123456789"}}, now)
	}
	for i := range 5 {
		settle(fmt.Sprint(i), nil)
	}
	settle("broken", errors.New("it broke"))
	require.Len(t, a.of, 3, "the oldest verdicts are dropped, and breakage is not kept")
	require.Len(t, got, 6)
	require.False(t, a.enter(&job{key: "4", digest: "4", receiver: l}), "the last one is kept")
	require.Equal(t, "0123456789", got[6].result.Stdout)
	a.tidy(now.Add(2 * time.Minute))
	require.Empty(t, a.of)
	require.Zero(t, a.bytes)
}
