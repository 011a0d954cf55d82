package activities

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

func poolOf(m Torch) *enginePool {
	return newEnginePool(m, func(e policy.Engine) *slot { return newSlot(nil, e, "") })
}

func torchRecipe(devices int, dtype string) *recipes.Recipe {
	return &recipes.Recipe{Engine: recipes.Engine{Kind: "torch", Devices: devices, Hosts: 1, Dtype: dtype}}
}

// taken takes a run's engine, which has to be there at once.
func taken(t *testing.T, e *enginePool, run string, r *recipes.Recipe) (*slot, func(calledOff bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s, leave, err := e.take(ctx, run, r, false)
	require.NoError(t, err)
	return s, leave
}

// waits reports that a run's engine cannot be had for now.
func waits(t *testing.T, e *enginePool, run string, r *recipes.Recipe) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := e.take(ctx, run, r, false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, _, err = e.take(t.Context(), run, r, true)
	require.ErrorIs(t, err, errElsewhere, "who may go elsewhere does not wait")
}

// Without devices there is one engine at a time, of whatever run; equal settings share it.
func TestOneEngineOnTheProcessor(t *testing.T) {
	m := &torchMaker{}
	e := poolOf(m)
	learns, leave := taken(t, e, "r", torchRecipe(1, "float32"))
	samples, leaveToo := taken(t, e, "r", torchRecipe(1, "float32"))
	require.Same(t, learns, samples, "a run's stages share its engine")
	waits(t, e, "other", torchRecipe(1, "float32"))
	leave(false)
	waits(t, e, "other", torchRecipe(1, "float32"))
	leaveToo(false)
	same, leave := taken(t, e, "other", torchRecipe(1, "float32"))
	require.Same(t, learns, same, "an engine of equal settings need not start anew")
	leave(false)
	another, leave := taken(t, e, "r", torchRecipe(2, "bfloat16"))
	require.NotSame(t, learns, another)
	require.Equal(t, []int{2, 1}, []int{m.opened, m.closed})
	leave(false)
	require.NoError(t, e.Close())
	require.Equal(t, 2, m.closed)
	_, _, err := e.take(t.Context(), "r", torchRecipe(1, "float32"), false)
	require.EqualError(t, err, "the worker ends")
}

// As many runs train at once as their gangs of devices fit on the host.
func TestEnginesByDevices(t *testing.T) {
	m := &torchMaker{devices: 4}
	e := poolOf(m)
	a, leaveA := taken(t, e, "a", torchRecipe(2, "float32"))
	b, leaveB := taken(t, e, "b", torchRecipe(2, "float32"))
	require.NotSame(t, a, b, "each run has its own, of equal settings too")
	waits(t, e, "c", torchRecipe(1, "float32"))
	leaveA(false)
	_, leaveC := taken(t, e, "c", torchRecipe(1, "float32"))
	require.Equal(t, []int{3, 1}, []int{m.opened, m.closed}, "the idle engine made room")
	waits(t, e, "a", torchRecipe(2, "float32"))
	leaveC(false)
	again, leaveB2 := taken(t, e, "b", torchRecipe(2, "float32"))
	require.Same(t, b, again)
	leaveB(false)
	leaveB2(true)
	require.Equal(t, 2, m.closed, "work that was called off gives the devices back at once")

	// Ranks of another host's engine take their share of the room.
	release, err := e.room(t.Context(), 3)
	require.NoError(t, err)
	_, leaveC = taken(t, e, "c", torchRecipe(1, "float32"))
	waits(t, e, "a", torchRecipe(2, "float32"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = e.room(ctx, 2)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	release()
	release, err = e.room(t.Context(), 2)
	require.NoError(t, err)
	leaveC(false)
	release()
	require.NoError(t, e.Close())
	require.Equal(t, m.opened, m.closed)
}

// More devices than the worker has are the lease's to refuse, with its reasons.
func TestTooManyDevicesAreAskedFor(t *testing.T) {
	m := &torchMaker{devices: 2}
	e := poolOf(m)
	_, leave := taken(t, e, "a", torchRecipe(2, "float32"))
	leave(false)
	m.none = errors.New("3 wanted, this host has 2")
	_, _, err := e.take(t.Context(), "b", torchRecipe(3, "float32"), false)
	require.EqualError(t, err, "open the PyTorch engine: 3 wanted, this host has 2")
	m.none = nil
	taken(t, e, "a", torchRecipe(2, "float32"))
}

// Whoever waits is served when somebody leaves, whatever the order of coming.
func TestEnginesUnderContention(t *testing.T) {
	m := &torchMaker{devices: 2}
	e := poolOf(m)
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			_, leave, err := e.take(t.Context(), string(rune('a'+i%5)), torchRecipe(1+i%2, "float32"), false)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond)
			leave(i%7 == 0)
		})
	}
	all.Wait()
	require.NoError(t, e.Close())
	require.Equal(t, m.opened, m.closed)
	require.Empty(t, e.held)
	require.Equal(t, 2, m.most, "all devices were used, and no more than there are")
}
