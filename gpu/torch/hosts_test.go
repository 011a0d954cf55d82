package torch

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
)

// besides is the other host of an engine's gang, in this process: it serves its ranks from its own folder.
type besides struct {
	meet Rendezvous
	stop context.CancelFunc
	lost chan struct{}
	err  error // of Serve, once lost is closed
}

func (b *besides) Rendezvous() Rendezvous { return b.meet }
func (b *besides) Lost() <-chan struct{}  { return b.lost }
func (b *besides) Err() error             { return errors.Join(errors.New("host b is lost"), b.err) }
func (b *besides) Close() error           { b.stop(); <-b.lost; return nil }

// serveBesides starts it.
func serveBesides(t testing.TB, o Options, dir string) *besides {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	meet := Rendezvous{Address: l.Addr().String(), ID: "test", Hosts: 2, Interface: "lo"}
	ctx, stop := context.WithCancel(context.Background())
	b := &besides{meet: meet, stop: stop, lost: make(chan struct{})}
	o.Dir = dir
	meet.Place = 1
	go func() {
		b.err = Serve(ctx, o, meet)
		close(b.lost)
	}()
	return b
}

// TestRealHosts: one rank on each of two hosts computes what one process computes; a host that is lost in mid-update
// ends the engine, nothing stays behind on either host, and the update done again gives the digest of an undisturbed
// one.
func TestRealHosts(t *testing.T) {
	pythontest.NeedLong(t)
	there := t.TempDir()
	var other *besides
	e, _ := openReal(t, func(o *Options) {
		o.Hosts, o.Ranks = 2, 1
		its := *o
		o.Gather = func(context.Context) (Gang, error) {
			other = serveBesides(t, its, there)
			return other, nil
		}
	})
	require.Contains(t, e.Describe().Device, "2 ranks on 2 hosts")
	one := fromPool(t, 1)
	defer one.Close()
	for role, dir := range map[policy.Role]string{policy.RolePolicy: initialised(t, tiny, 9),
		policy.RoleCritic: criticFolder(t, tiny)} {
		t.Run(string(role), func(t *testing.T) { requireParity(t, one, e, role, dir) })
	}

	ctx, from := t.Context(), initialised(t, medium, 3)
	want, err := update(ctx, e, from, filepath.Join(t.TempDir(), "undisturbed"))
	require.NoError(t, err)
	first := other
	killed := t.TempDir()
	_, err = update(ctx, &lostAt{e, func() { killRanksIn(t, there) }}, from, filepath.Join(killed, "saved"))
	require.ErrorIs(t, err, policy.ErrLost)
	<-first.lost
	for _, dir := range []string{there, killed} {
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
	got, err := update(ctx, e, from, filepath.Join(killed, "saved"))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NotSame(t, first, other)

	require.NoError(t, e.Close())
	<-other.lost
	left, err := os.ReadDir(there)
	require.NoError(t, err)
	require.Empty(t, left)
}

// lostAt loses something when the first optimiser step is due.
type lostAt struct {
	*Engine
	lose func()
}

func (l *lostAt) Step(ctx context.Context, role policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	if l.lose != nil {
		l.lose()
		l.lose = nil
	}
	return l.Engine.Step(ctx, role, o)
}

// killRanksIn kills the ranks of the host whose processes run below a folder, not torchrun.
func killRanksIn(t *testing.T, dir string) {
	t.Helper()
	killed := 0
	for pid, parent := range parents() {
		cwd := func(pid int) string {
			at, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
			return at
		}
		if in, err := filepath.Rel(dir, cwd(pid)); err != nil || !filepath.IsLocal(in) || cwd(parent) != cwd(pid) {
			continue
		}
		p, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, p.Kill())
		killed++
	}
	require.Positive(t, killed)
}

func TestHostsRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"-1 hosts": {Python: "p", Hosts: -1},
		"2 hosts need Gather, which brings the others": {Python: "p", Hosts: 2},
	} {
		_, err := Open(t.Context(), o)
		require.ErrorIs(t, err, policy.ErrBadRequest)
		require.ErrorContains(t, err, want)
	}
	err := Serve(t.Context(), Options{Python: "p"}, Rendezvous{Address: "127.0.0.1:1", ID: "x", Hosts: 2})
	require.ErrorContains(t, err, "place 0 of 2 hosts")
	o, err := Options{
		Python: "p", Ranks: 2, Hosts: 2, Threads: 1,
		meet: &Rendezvous{Address: "h:1", ID: "x", Hosts: 2, Place: 1, Interface: "eth1"},
	}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, []string{
		"p", "-I", "/agent.py", "--rdzv-backend", "bound", "--rdzv-endpoint", "h:1", "--rdzv-id", "x", "--rdzv-conf",
		"place=1,timeout=120", "--nnodes", "2", "--nproc-per-node", "2", "--max-restarts", "0", "--no-python",
	}, o.commandLine("/m.py")[:18])
	env := o.environment([]string{"NCCL_SOCKET_IFNAME=ib0"}, "/d")
	require.Contains(t, env, "GLOO_SOCKET_IFNAME=eth1")
	require.NotContains(t, env, "NCCL_SOCKET_IFNAME=eth1", "the host's own setting is kept")
}
