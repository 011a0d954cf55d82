package activities

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/schema/stages"
)

// registered lists the registered names.
type registered struct {
	worker.ActivityRegistry
	names []string
}

func (r *registered) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	r.names = append(r.names, o.Name)
}

// A worker registers the declared activities and no others.
func TestEveryDeclaredActivityIsRegistered(t *testing.T) {
	var r registered
	(&Deps{}).Register(&r)
	var declared []string
	for _, a := range stages.Activities() {
		declared = append(declared, a.Name)
	}
	slices.Sort(declared)
	slices.Sort(r.names)
	require.Equal(t, declared, r.names)
	require.ElementsMatch(t, stages.Pure(), slices.Collect(maps.Keys((&Deps{}).pureStages())))
}
