package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A session whose timer fires while a search for a place holds its turn is still forgotten. The search gives the turn
// back without setting the timer, and perhaps no cell ever arrives that would set it.
func TestATimerThatFiresDuringASearchIsNotLost(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{Idle: time.Hour}, "x")
	k := p.entries["x"]
	k.timer.Stop()
	p.settings.Idle = time.Millisecond
	k.turn <- struct{}{} // as longestIdle takes it
	p.idle(k)            // the timer fires
	<-k.turn             // as longestIdle gives it back
	require.Eventually(t, func() bool { return p.Counts().Known == 0 }, time.Minute, time.Millisecond)
}
