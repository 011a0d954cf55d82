package zygote

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Programs and settings of interpreters are not on their command lines.
func TestCommandLinesAreShort(t *testing.T) {
	everyTier(t, func(t *testing.T, e *Executor) {
		for _, s := range e.slots.all() {
			if z := s.bare(); z != nil {
				line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", z.command.Process.Pid))
				require.NoError(t, err)
				require.Contains(t, string(line), "<zygote>")
				require.Less(t, len(line), 200)
			}
		}
	})
}
