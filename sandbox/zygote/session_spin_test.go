package zygote

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// After one spin in vain the next one is skipped, and only that one.
func TestSpin(t *testing.T) {
	var l spin
	var looked []bool
	for _, comes := range []bool{true, true, false, false, true, true, false, true, true} {
		due := l.due()
		if due {
			l.learn(comes)
		}
		looked = append(looked, due)
	}
	require.Equal(t, []bool{true, true, true, false, true, true, true, false, true}, looked)
}
