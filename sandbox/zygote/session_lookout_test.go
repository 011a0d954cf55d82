package zygote

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A look in vain spares the next one, and no more.
func TestLookout(t *testing.T) {
	var l lookout
	var looked []bool
	for _, comes := range []bool{true, true, false, false, true, true, false, true, true} {
		looks := l.looks()
		if looks {
			l.learn(comes)
		}
		looked = append(looked, looks)
	}
	require.Equal(t, []bool{true, true, true, false, true, true, true, false, true}, looked)
}
