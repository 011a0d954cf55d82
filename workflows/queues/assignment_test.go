package queues

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// assigning is an assignment of shards to the queues a, b and c, whose orders are carried out at once.
type assigning struct {
	*Assignment
	t   *testing.T
	now float64
}

func assigningTo(t *testing.T, shards int) *assigning {
	t.Helper()
	a, err := New([]string{"a", "b", "c"}, shards, 1000)
	require.NoError(t, err)
	_, err = a.Begin(0)
	require.NoError(t, err)
	return &assigning{Assignment: a, t: t}
}

// of returns the shards that run on each queue.
func (a *assigning) of() string {
	var lists []string
	for _, q := range a.queues {
		lists = append(lists, fmt.Sprint(q.running))
	}
	return fmt.Sprint(lists)
}

// do notes something, a second later.
func (a *assigning) do(f func(now float64) ([]Order, error)) []Order {
	a.t.Helper()
	a.now++
	out, err := f(a.now)
	require.NoError(a.t, err)
	return out
}

func (a *assigning) submitAll() {
	a.t.Helper()
	for i := range a.shards {
		a.do(func(now float64) ([]Order, error) { return a.Submit(now, i) })
	}
}

func (a *assigning) join(queue, shards, tokens int) {
	a.t.Helper()
	a.do(func(now float64) ([]Order, error) {
		return a.Joins(now, queue, Room{Worker: "h, cpu", Shards: shards, Tokens: tokens})
	})
}

func (a *assigning) end(shard int) {
	a.t.Helper()
	a.do(func(now float64) ([]Order, error) { return a.Ended(now, shard, a.shards[shard].attempt, 100) })
}

func (a *assigning) vanish(shard int) {
	a.t.Helper()
	a.do(func(now float64) ([]Order, error) { return a.Vanished(now, shard) })
}

// Shards wait until a queue has a worker, go where the most room is, and fill the room that others leave.
func TestQueuesTakeShardsAsTheyHaveRoom(t *testing.T) {
	a := assigningTo(t, 8)
	a.submitAll()
	require.Equal(t, "[[] [] []]", a.of())
	a.join(1, 2, 0)
	require.Equal(t, "[[] [0 1] []]", a.of())
	a.join(0, 3, 0)
	require.Equal(t, "[[2 3 4] [0 1] []]", a.of())
	a.end(1)
	require.Equal(t, "[[2 3 4] [0 5] []]", a.of())
	a.join(2, 9, 1500) // in the worst case there is room for one shard; another one keeps the engine busy
	require.Equal(t, "[[2 3 4] [0 5] [6 7]]", a.of())
	for _, shard := range []int{6, 2, 3, 4, 0, 5, 7} {
		a.end(shard)
	}
	require.Equal(t, "[[] [] []]", a.of())
	open, _ := a.core.Open()
	require.Zero(t, open)
	require.Equal(t, []int{3, 3, 2}, []int{a.queues[0].done, a.queues[1].done, a.queues[2].done})
}

// Before the assignment begins, shards and queues only come together: a small rollout is shared by all.
func TestASmallRolloutIsShared(t *testing.T) {
	a, err := New([]string{"a", "b", "c"}, 5, 1000)
	require.NoError(t, err)
	b := &assigning{Assignment: a, t: t}
	b.submitAll()
	for q := range b.queues {
		b.join(q, 4, 0)
	}
	require.Equal(t, "[[] [] []]", b.of())
	b.do(b.Begin)
	require.Equal(t, "[[0 3] [1 4] [2]]", b.of())
}

// A queue on which shards vanish takes no more. Its shards go on elsewhere, and once the last has left it, it is lost
// until it joins again.
func TestShardsOfALostQueueGoOnElsewhere(t *testing.T) {
	a := assigningTo(t, 6)
	a.join(0, 2, 0)
	a.join(1, 3, 0)
	a.submitAll()
	require.Equal(t, "[[1 3] [0 2 4] []]", a.of())
	a.vanish(1)
	require.Equal(t, "[[3] [0 2 4] []]", a.of(), "no other queue has room, and a takes none")
	require.True(t, a.queues[0].up)
	a.end(2)
	require.Equal(t, "[[3] [0 4 1] []]", a.of(), "a shard with an earlier attempt goes first")
	a.vanish(3)
	require.False(t, a.queues[0].up)
	a.end(0)
	require.Equal(t, "[[] [4 1 3] []]", a.of())
	a.join(0, 2, 0)
	require.Equal(t, "[[5] [4 1 3] []]", a.of())
	for _, shard := range []int{1, 3, 4, 5} {
		a.end(shard)
	}
	open, _ := a.core.Open()
	require.Zero(t, open)
}

// If one of several workers of a queue is gone, the shards of the others go on, and the queue takes shards again.
func TestAQueueWithAnotherWorkerGoesOn(t *testing.T) {
	a := assigningTo(t, 4)
	a.join(0, 2, 0)
	a.submitAll()
	a.vanish(0)
	require.Equal(t, "[[1] [] []]", a.of())
	a.end(1)
	require.Equal(t, "[[0 2] [] []]", a.of())
	require.True(t, a.queues[0].up)
}

// A queue that fails on a shard is not asked for it again, and when all have failed, the shard has.
func TestAnotherQueueIsTriedAfterAFailure(t *testing.T) {
	a := assigningTo(t, 2)
	a.submitAll()
	a.join(0, 2, 0)
	a.join(1, 2, 0)
	require.Equal(t, "[[0 1] [] []]", a.of())
	fails := func(shard int) (again bool) {
		a.do(func(now float64) (out []Order, err error) {
			out, again, err = a.Failed(now, shard)
			return out, err
		})
		return again
	}
	require.True(t, fails(1))
	require.Equal(t, "[[0] [1] []]", a.of())
	require.False(t, fails(1))
	a.do(func(now float64) ([]Order, error) { return a.Withdraw(now, 1) })
	require.Equal(t, "[[0] [] []]", a.of())
	open, _ := a.core.Open()
	require.Equal(t, 1, open)
}

// The shards of a queue that is ten times slower than the others are given up for them, and it takes no more.
func TestASlowQueueGetsFewerShards(t *testing.T) {
	a := assigningTo(t, 9)
	a.submitAll()
	for q := range a.queues {
		a.join(q, 3, 0)
	}
	require.Equal(t, "[[0 1 2] [3 4 5] [6 7 8]]", a.of())
	see := func(seconds ...float64) []Order {
		return a.do(func(now float64) ([]Order, error) { return a.Observe(now, seconds) })
	}
	require.Empty(t, see(0.1, 0.1, 1), "no shard has ended, so that nothing says how long they are")
	a.end(0)
	a.end(3)
	require.NotEmpty(t, see(0.1, 0.1, 1))
	require.Equal(t, "[[1 2 6] [4 5 7] []]", a.of(), "shard 8 waits for room")
	require.Contains(t, a.Markdown(20), "| a | h, cpu | 21 22 26 | 1 | 10 |")

	a.do(func(now float64) ([]Order, error) { return a.Ended(now, 6, 1, 100) })
	require.Equal(t, "[[1 2 8] [4 5 7] []]", a.of(), "an attempt that had been given up may finish its shard")
}

// Whatever happens in whatever order, every shard ends once, no queue runs more than it has room for, and the same
// events make the same assignment.
func TestAssignmentsAreTheSameForTheSameEvents(t *testing.T) {
	run := func(seed uint64) (log string) {
		rng := rand.New(rand.NewPCG(seed, 19)).IntN
		a := assigningTo(t, 30)
		a.submitAll()
		ended, failed := 0, 0
		for range 10000 {
			if ended+failed == 30 {
				break
			}
			q := rng(3)
			at := &a.queues[q]
			switch {
			case !at.up:
				if rng(2) == 0 {
					a.join(q, 1+rng(4), 0)
				}
			case len(at.running) == 0:
			case rng(8) == 0:
				a.vanish(at.running[rng(len(at.running))])
			case rng(8) == 0:
				shard, again := at.running[0], false
				a.do(func(now float64) (out []Order, err error) {
					out, again, err = a.Failed(now, shard)
					return out, err
				})
				if !again {
					a.do(func(now float64) ([]Order, error) { return a.Withdraw(now, shard) })
					failed++
				}
			case rng(4) == 0:
				seen := make([]float64, 3)
				seen[q] = 1 / float64(1+rng(100))
				a.do(func(now float64) ([]Order, error) { return a.Observe(now, seen) })
			default:
				a.end(at.running[rng(len(at.running))])
				ended++
			}
			for _, q := range a.queues {
				require.LessOrEqual(t, len(q.running), max(q.room.Shards, 1))
				require.True(t, q.up || len(q.running) == 0)
			}
			log += a.of() + "\n"
		}
		require.Equal(t, 30, ended+failed)
		open, _ := a.core.Open()
		require.Zero(t, open)
		return log
	}
	for seed := range uint64(50) {
		require.Equal(t, run(seed), run(seed))
	}
}
