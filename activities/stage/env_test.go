package stage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A stage that goes on after its limit keeps what the activity has opened, until it ends too.
func TestAnEnvironmentClosesAfterItsLastStage(t *testing.T) {
	var e Env
	var closed []string
	activity := e.Use()
	e.AtEnd(func() { closed = append(closed, "verdicts") })
	e.AtEnd(func() { closed = append(closed, "flow") })
	e.Use()()
	abandoned := e.Use()
	activity()
	require.Empty(t, closed)
	abandoned()
	require.Equal(t, []string{"flow", "verdicts"}, closed)
}
