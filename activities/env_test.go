package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A stage that goes on after its limit keeps what the activity has opened, until it ends too.
func TestAnEnvironmentClosesAfterItsLastStage(t *testing.T) {
	var e Env
	var closed []string
	activity := e.use()
	e.atEnd(func() { closed = append(closed, "verdicts") })
	e.atEnd(func() { closed = append(closed, "flow") })
	e.use()()
	abandoned := e.use()
	activity()
	require.Empty(t, closed)
	abandoned()
	require.Equal(t, []string{"flow", "verdicts"}, closed)
}
