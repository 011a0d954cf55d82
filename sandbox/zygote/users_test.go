package zygote

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox"
)

func TestUsersOfANamespace(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n": true,
		"0 1000 1\n1 100000 65536\n":         false,
		"0 1000 1\n2000000000 5 40000000\n":  true,
		"0 0 2000000001\n":                   false,
		"not a map\n":                        false,
		"":                                   false,
	} {
		require.Equal(t, want, hasUsers(text, firstUser, 2*perParent*parents), text)
	}
}

// Interpreters of the tier "full" are different users of the host. What calls see does not differ.
func TestZygotesAreDifferentUsers(t *testing.T) {
	if rangeOfUsers() == 0 {
		t.Skip("this process cannot give users to interpreters")
	}
	e := open(t, Options{Tier: sandbox.TierFull, Workers: 3})
	users := map[uint32]bool{}
	for _, s := range e.slots.all() {
		if z := s.bare(); z != nil {
			var about unix.Stat_t
			require.NoError(t, unix.Stat(fmt.Sprintf("/proc/%d", z.command.Process.Pid), &about))
			users[about.Uid] = true
		}
	}
	require.Len(t, users, 3)
	for range 6 {
		require.Equal(t, "(1000, 1000)", run(t, e, "import os\nos.getuid(), os.getgid()").Value)
	}
}
