package stage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
)

// sized is a sampler with room.
type sized struct{ policy.Sampler }

func (sized) Describe() policy.Description { return policy.Description{Device: "servers: a, b"} }

func (sized) Room() policy.Room { return policy.Room{Rows: 12, Tokens: 3000} }

// While a worker generates, its heartbeats say with what, and how much it has room for.
func TestHeartbeatsReportCapacity(t *testing.T) {
	p := &Progress{}
	p.Set(2, 5)
	stop := p.Samples(sized{})
	want := api.Capacity{Engine: "servers: a, b", Rows: 12, Tokens: 3000}
	require.Equal(t, []any{int64(2), int64(5), want}, p.Details())
	stop()
	require.Equal(t, []any{int64(2), int64(5)}, p.Details())
}
