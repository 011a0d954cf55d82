package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A session whose timer fires while a search for a place holds its turn is still forgotten. The search gives the turn
// back without setting the timer, and perhaps no cell ever arrives that would set it.
func TestATimerThatFiresDuringASearchIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &adders{}, Settings{Idle: time.Hour})
		value(t, p, "x", "+1")
		k := p.entries["x"]
		k.timer.Stop()
		k.turn <- struct{}{} // as longestIdle takes it
		p.idle(k)            // the timer fires
		<-k.turn             // as longestIdle gives it back
		time.Sleep(2 * time.Hour)
		require.Empty(t, p.entries)
	})
}
