package activities

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A model too large for the store is refused before anything starts, with both sizes, and nothing is written.
func TestModelsTooLargeForTheStoreAreRefused(t *testing.T) {
	resolved, err := recipes.Resolve("quickstart", "", nil, nil, nil)
	require.NoError(t, err)
	b := stepOf(t, nil, nil)
	shape, err := planning.NewShape(resolved.Recipe.Policy, b.deps.Recipes.Tokens)
	require.NoError(t, err)
	field, size := planning.LargestFile(&resolved.Recipe, shape)
	require.Equal(t, "policy", field)
	require.Equal(t, 8*shape.Params(), size, "the optimiser's state is the largest file")

	b.deps.Store = faults.New(mem.New()).WithMaxObject(size - 1)
	err = prepare.Storable(b.deps, &resolved.Recipe)
	require.ErrorContains(t, err, fmt.Sprintf("(%d bytes)", size))
	require.ErrorContains(t, err, fmt.Sprintf("(%d bytes)", size-1))
	b.deps.Store = faults.New(mem.New()).WithMaxObject(size)
	require.NoError(t, prepare.Storable(b.deps, &resolved.Recipe))

	lora, err := recipes.Resolve("quickstart", "", []string{"engine.kind=torch", "engine.lora={rank: 4}"}, nil, nil)
	require.NoError(t, err)
	field, adapted := planning.LargestFile(&lora.Recipe, shape)
	require.Equal(t, "policy", field)
	require.Equal(t, 4*shape.Params(), adapted, "an adapter's state is small, and the base's weights are not")
}

func TestPrepareRunRefusesWhatTheStoreCannotHold(t *testing.T) {
	b := stepOf(t, nil, nil)
	objects := faults.New(b.deps.Store).WithMaxObject(1000)
	b.deps.Store = objects
	before, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	_, err = do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
		Recipe: "quickstart"})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.True(t, app.NonRetryable())
	require.Equal(t, api.FailBadInput, app.Type())
	require.ErrorContains(t, err, "1000 bytes")
	after, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A model that the machine's memory cannot hold is refused before anything starts, with the estimate and the remedy.
func TestModelsTooLargeForTheMachineAreRefused(t *testing.T) {
	engine, err := cpu.Open(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer engine.Close()
	b := stepOf(t, engine, nil)
	b.deps.Engines.Memory = 1 << 20
	_, err = do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
		Recipe: "quickstart"})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.True(t, app.NonRetryable())
	require.Equal(t, api.FailBadInput, app.Type())
	require.ErrorContains(t, err, "out of memory, by estimate: the CPU engine takes ")
	require.ErrorContains(t, err, "the machine has 1.0 MiB: choose a smaller model")
	b.deps.Engines.Memory = 1 << 30
	_, err = do(b, prepare.PrepareRun{Worker: b.deps}.Execute, api.PrepareInput{Run: "new", Kind: "train",
		Recipe: "quickstart"})
	require.NoError(t, err)
	resolved, err := recipes.Resolve("quickstart", "", nil, nil, nil)
	require.NoError(t, err)
	b.deps.Engines.Memory = 1
	require.NoError(t, prepare.Holdable(b.deps, &resolved.Recipe, "torch"), "devices are looked at when leased")
}
