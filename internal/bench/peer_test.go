package bench

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func peer(t *testing.T, script string) *Peer {
	t.Helper()
	p, err := StartPeer(t.Context(), "the shell", exec.Command("sh", "-c", script))
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func TestPeerAnswers(t *testing.T) {
	p := peer(t, `echo '{"ready": true}'; while read -r line; do echo "[$line]"; done`)
	var greeting struct{ Ready bool }
	require.NoError(t, p.Hear(t.Context(), &greeting))
	require.True(t, greeting.Ready)
	for _, n := range []float64{3, 0.5} {
		var answer []float64
		require.NoError(t, p.Ask(t.Context(), n, &answer))
		require.Equal(t, []float64{n}, answer)
	}
	peak, err := p.Close()
	require.NoError(t, err)
	require.Positive(t, peak)
	require.EqualError(t, p.Ask(t.Context(), 1, nil), "ask the shell: it has ended")
	p.Kill() // does nothing
}

func TestPeersThatAreLost(t *testing.T) {
	for _, c := range []struct{ name, script, fault string }{
		{"fails", `read -r line; echo it broke >&2; exit 4`,
			"the shell is lost: exit status 4; it wrote last:\nit broke"},
		{"ends", `read -r line`, "the shell is lost: EOF; it wrote last:"},
		{"answers something else", `read -r line; echo three; read -r line`,
			`the shell is lost: read "three\n": invalid`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := peer(t, c.script)
			require.ErrorContains(t, p.Ask(t.Context(), 1, new(int)), c.fault)
			require.EqualError(t, p.Ask(t.Context(), 1, new(int)), "ask the shell: it has ended")
		})
	}
	p := peer(t, `cat >/dev/null; echo it broke >&2; exit 4`)
	_, err := p.Close()
	require.EqualError(t, err, "end the shell: exit status 4; it wrote last:\nit broke")
	_, err = StartPeer(t.Context(), "nothing", exec.Command("/nowhere"))
	require.ErrorContains(t, err, "start nothing: ")
}

// A context that ends, ends the peer and its children, in a question and between questions.
func TestPeerIsKilled(t *testing.T) {
	const hangs = `sleep 600 & echo 1; wait`
	ctx, cancel := context.WithCancel(t.Context())
	p := peer(t, hangs)
	require.NoError(t, p.Hear(t.Context(), new(int)))
	time.AfterFunc(10*time.Millisecond, cancel)
	require.ErrorIs(t, p.Ask(ctx, 1, new(int)), context.Canceled)

	ctx, cancel = context.WithCancel(t.Context())
	p, err := StartPeer(ctx, "the shell", exec.Command("sh", "-c", hangs))
	require.NoError(t, err)
	require.NoError(t, p.Hear(t.Context(), new(int)))
	cancel()
	_, err = p.Close()
	require.ErrorContains(t, err, "signal: killed")
}
