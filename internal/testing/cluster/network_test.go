package cluster

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Machines reach each other until one is cut off, and again afterwards. A network that its process left is removed.
func TestNetwork(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is missing (Debian: apt-get install iproute2)")
	}
	if out, err := exec.Command("ip", "netns", "add", "rw999999999-left").CombinedOutput(); err != nil {
		t.Skipf("this machine gives no network namespaces: %s", out)
	}
	n, err := NewNetwork()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	a, err := n.Machine("a")
	require.NoError(t, err)
	b, err := n.Machine("b")
	require.NoError(t, err)
	u := StartUnit("listener", func() *exec.Cmd {
		return a.Command("python3", "-c", "import socket, time\n"+
			"s = socket.create_server((\"\", 7000))\nwhile True: s.accept()[0].close()")
	})
	t.Cleanup(func() { require.NoError(t, u.Stop(9, time.Second)) })
	require.NoError(t, Answers(a.IP+":7000", 10*time.Second), u.Said())
	reach := func() error {
		return b.Command("python3", "-c", "import socket, sys\n"+
			"socket.create_connection((sys.argv[1], 7000), timeout=0.5)", a.IP).Run()
	}
	require.NoError(t, reach())
	require.NoError(t, n.Cut(b))
	require.Error(t, reach())
	require.NoError(t, n.Join(b))
	require.NoError(t, reach())

	first := u.PID()
	require.NoError(t, u.Kill())
	for end := time.Now().Add(10 * time.Second); u.PID() == 0 || u.PID() == first; time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "the unit is not started again")
	}
	listed, err := exec.Command("ip", "netns", "list").Output()
	require.NoError(t, err)
	require.False(t, strings.Contains(string(listed), "rw999999999"), "%s", listed)
}
