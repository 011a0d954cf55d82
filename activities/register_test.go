package activities

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
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
	Register(&r, &stage.Worker{Activities: Stages(&stage.Worker{})})
	var declared []string
	for _, a := range stages.Activities() {
		declared = append(declared, a.Name)
	}
	slices.Sort(declared)
	slices.Sort(r.names)
	require.Equal(t, declared, r.names)
	for _, name := range stages.Pure()[1:] { // the first is the reward, whose shards have an input of their own
		of, _ := stages.Of(name)
		execute := reflect.TypeOf(Stages(&stage.Worker{})[of.Activities[0].Name].Activity)
		require.Equal(t, reflect.TypeFor[api.StageInput](), execute.In(1), name)
	}
}
