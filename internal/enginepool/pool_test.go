package enginepool

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/recipes"
)

func poolOf(m Torch) *Pool { return New(Options{Torch: m}) }

func torchRecipe(devices int, dtype string) *recipes.Recipe {
	return &recipes.Recipe{Engine: recipes.Engine{Kind: "torch", Devices: devices, Hosts: 1, Dtype: dtype}}
}

// taken takes a run's engine, which must be available at once.
func taken(t *testing.T, e *Pool, run string, r *recipes.Recipe) (*Resident, Release) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s, leave, err := e.Trainer(ctx, run, r, false)
	require.NoError(t, err)
	return s.Resident, leave
}

// waits requires that a run's engine is not available for now.
func waits(t *testing.T, e *Pool, run string, r *recipes.Recipe) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := e.Trainer(ctx, run, r, false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, _, err = e.Trainer(t.Context(), run, r, true)
	require.ErrorIs(t, err, ErrElsewhere, "work that may go elsewhere does not wait")
}

// Without devices there is one engine at a time, for any run; runs with equal settings share it.
func TestOneEngineOnTheProcessor(t *testing.T) {
	m := &torchMaker{offer: Offer{Capabilities: able}}
	e := poolOf(m)
	learns, leave := taken(t, e, "r", torchRecipe(1, "float32"))
	samples, leaveToo, err := e.Sampler(t.Context(), "r", torchRecipe(1, "float32"), false)
	require.NoError(t, err)
	require.Same(t, learns, samples.Resident, "a run's stages share its engine")
	waits(t, e, "other", torchRecipe(1, "float32"))
	leave(false)
	waits(t, e, "other", torchRecipe(1, "float32"))
	leaveToo(false)
	same, leave := taken(t, e, "other", torchRecipe(1, "float32"))
	require.Same(t, learns, same, "an engine of equal settings need not start again")
	leave(false)
	another, leave := taken(t, e, "r", torchRecipe(2, "bfloat16"))
	require.NotSame(t, learns, another)
	require.Equal(t, []int{2, 1}, []int{m.opened, m.closed})
	leave(false)
	require.NoError(t, e.Close())
	require.Equal(t, 2, m.closed)
	_, _, err = e.Trainer(t.Context(), "r", torchRecipe(1, "float32"), false)
	require.EqualError(t, err, "the worker ends")
}

// As many runs train at once as their devices fit on the host.
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
	require.Equal(t, 2, m.closed, "cancelled work gives the devices back at once")

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

// TestServeGivesTheRoomBack: however ranks of another host's engine end, their devices are free afterwards.
func TestServeGivesTheRoomBack(t *testing.T) {
	for _, served := range []error{nil, gang.ErrGone, errors.New("exit status 1")} {
		e := poolOf(&torchMaker{devices: 1, served: served})
		require.ErrorIs(t, e.Serve(t.Context(), gang.Invitation{}), served)
		require.Zero(t, e.served)
		taken(t, e, "r", torchRecipe(1, "float32"))
	}
}

// A request for more devices than the worker has goes to the lease, which refuses it with its reasons.
func TestTooManyDevicesAreAskedFor(t *testing.T) {
	m := &torchMaker{devices: 2}
	e := poolOf(m)
	_, leave := taken(t, e, "a", torchRecipe(2, "float32"))
	leave(false)
	m.none = errors.New("3 wanted, this host has 2")
	_, _, err := e.Trainer(t.Context(), "b", torchRecipe(3, "float32"), false)
	require.EqualError(t, err, "open the PyTorch engine: 3 wanted, this host has 2")
	m.none = nil
	taken(t, e, "a", torchRecipe(2, "float32"))
}

// Every waiting caller gets an engine when another leaves, in any order of arrival.
func TestEnginesUnderContention(t *testing.T) {
	m := &torchMaker{devices: 2}
	e := poolOf(m)
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			_, leave, err := e.Trainer(t.Context(), string(rune('a'+i%5)), torchRecipe(1+i%2, "float32"), false)
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
	require.Empty(t, e.slots)
	require.Equal(t, 2, m.most, "all devices were used, and no more than there are")
}

// TestAnEngineForEachAdapter: equal settings share an engine, and a new adapter's numbers depend on the run's seed.
// The warm start has an engine that trains the whole model.
func TestAnEngineForEachAdapter(t *testing.T) {
	m := &torchMaker{}
	e := poolOf(m)
	recipe := func(seed uint64, rank int) *recipes.Recipe {
		return &recipes.Recipe{Seed: seed, Engine: recipes.Engine{Kind: "torch",
			LoRA: &recipes.LoRA{Rank: rank, Alpha: 2, Targets: []string{"q_proj"}}}}
	}
	for _, c := range []struct {
		recipe *recipes.Recipe
		opened int
	}{
		{recipe(1, 4), 1}, {recipe(1, 4), 1}, {recipe(2, 4), 2}, {recipe(2, 8), 3}, {recipe(2, 8).WithoutAdapter(), 4},
		{recipe(3, 8).WithoutAdapter(), 4},
	} {
		_, leave := taken(t, e, "r", c.recipe)
		leave(false)
		require.Equal(t, c.opened, m.opened)
	}
	whole := &recipes.Recipe{}
	require.Same(t, whole, whole.WithoutAdapter())
	require.NoError(t, e.Close())
}

// TestLeasedKindsAreOpened requires an opening of every kind of engine that the pool leases.
func TestLeasedKindsAreOpened(t *testing.T) {
	for _, k := range engines.All {
		require.Equal(t, k.Leased, Openings[k.Name] != nil, k.Name)
	}
}
