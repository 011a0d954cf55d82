package enginepool

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/testing/authority"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/policy"
)

// gangProcess is an engine's process on several hosts, without ranks.
type gangProcess struct {
	*fake
	gang torch.Gang
}

func (g *gangProcess) Close() error {
	return errors.Join(g.fake.Close(), g.gang.Close())
}

// ranAs is what a member's maker was asked to run.
type ranAs struct {
	options torch.Options
	meet    torch.Rendezvous
}

// host makes a worker's maker that plays the part of a separate host.
func host(t *testing.T, name string, gpus ...*devicetest.GPU) (*bench, chan ranAs) {
	t.Helper()
	b, ran := newBench(t, t.TempDir(), gpus...), make(chan ranAs, 1)
	b.maker.o.Gangs = Gangs{Host: name, Address: "127.0.0.1", Wait: 5 * time.Second}
	b.maker.o.start = func(ctx context.Context, o torch.Options) (process, error) {
		p := &fake{options: o}
		if o.Gather == nil {
			return p, nil
		}
		g, err := o.Gather(ctx)
		if err != nil {
			return nil, err
		}
		return &gangProcess{p, g}, nil
	}
	b.maker.o.serve = func(ctx context.Context, o torch.Options, meet torch.Rendezvous) error {
		ran <- ranAs{o, meet}
		<-ctx.Done()
		return ctx.Err()
	}
	return b, ran
}

func anyRoom(context.Context, int) (func(), error) { return func() {}, nil }

// summons have hosts serve; their errors come by the channel.
func summons(leader *bench, hosts ...*bench) <-chan error {
	ended := make(chan error, len(hosts))
	leader.maker.o.Gangs.Summon = func(_ context.Context, i gang.Invitation, members int) (func(), error) {
		for _, h := range hosts {
			go func() { ended <- h.maker.Serve(context.Background(), i, anyRoom) }()
		}
		return func() {}, nil
	}
	return ended
}

func leasedBy(b *bench) int {
	_, pool := b.maker.Watch()
	return len(pool.Stats().Leased)
}

func TestAGangLeasesOnEveryHost(t *testing.T) {
	a, _ := host(t, "a", &devicetest.GPU{}, &devicetest.GPU{})
	b, ran := host(t, "b", &devicetest.GPU{}, &devicetest.GPU{}, &devicetest.GPU{})
	ended := summons(a, b)
	e := opened(t, a, settings{Devices: 2, Hosts: 2, Dtype: torch.BFloat16, Deterministic: true, Checkpointing: "on"})
	its := <-ran
	require.Equal(t, 2, its.options.Ranks)
	require.Len(t, its.options.UUIDs, 2)
	require.Equal(
		t, []any{torch.CUDA, torch.BFloat16, true, "on"},
		[]any{its.options.Device, its.options.Dtype, its.options.Deterministic, its.options.Checkpointing},
	)
	require.Equal(t, []int{2, 1}, []int{its.meet.Hosts, its.meet.Place})
	require.NotEmpty(t, its.meet.Interface)
	own := e.(*torchEngine).process.(*gangProcess).gang.Rendezvous()
	require.Equal(t, 0, own.Place)
	require.Equal(t, own.Address, its.meet.Address)
	require.Equal(t, []int{2, 2}, []int{leasedBy(a), leasedBy(b)})

	require.NoError(t, e.Close())
	require.Equal(t, []int{0, 0}, []int{leasedBy(a), leasedBy(b)}, "closed when every host has given its devices back")
	require.ErrorIs(t, <-ended, gang.ErrGone)
}

// Hosts with certificates of one authority share a model, and each says once what its connections do not protect.
func TestHostsSpeakTLS(t *testing.T) {
	ca, err := authority.New(t.TempDir())
	require.NoError(t, err)
	other, err := authority.New(t.TempDir())
	require.NoError(t, err)
	secured := func(by *authority.Authority, name string) (*bench, *transcript.Transcript) {
		pair, err := by.Issue(name)
		require.NoError(t, err)
		b, ran := host(t, name, &devicetest.GPU{})
		b.maker.o.Gangs.TLS = gang.TLS{Cert: pair.Cert, Key: pair.Key, CA: by.File}
		log := &transcript.Transcript{}
		b.maker.o.Logger = slog.New(slog.NewTextHandler(log, nil))
		go func() {
			for range ran { // drop them
			}
		}()
		t.Cleanup(func() { close(ran) })
		return b, log
	}
	a, log := secured(ca, "a")
	b, _ := secured(ca, "b")
	stranger, _ := secured(other, "c")
	plain, _ := host(t, "d", &devicetest.GPU{})
	for range 2 {
		refused := summons(a, stranger, plain)
		ask := a.maker.o.Gangs.Summon
		a.maker.o.Gangs.Summon = func(ctx context.Context, i gang.Invitation, members int) (func(), error) {
			dismiss, err := ask(ctx, i, members)
			for range 2 {
				require.ErrorIs(t, <-refused, gang.ErrElsewhere)
			}
			go func() { _ = b.maker.Serve(context.Background(), i, anyRoom) }()
			return dismiss, err
		}
		e := opened(t, a, settings{Devices: 1, Hosts: 2})
		require.NoError(t, e.Close())
	}
	require.Equal(t, 1, strings.Count(log.String(), "NCCL does not encrypt the tensors"))
	require.NotContains(t, log.String(), "without TLS")
	var its transcript.Transcript
	plain.maker.o.Logger = slog.New(slog.NewTextHandler(&its, nil))
	plain.maker.warned = sync.Once{}
	for range 2 {
		plain.maker.warn(torch.CUDA)
	}
	require.Equal(t, 1, strings.Count(its.String(), "speak without TLS: name certificates with --host-tls-cert"))
	require.Equal(t, 1, strings.Count(its.String(), "NCCL does not encrypt the tensors"))
}

// A leader whose address is no interface's asks no host, and the run is refused. A member leaves the place to others.
func TestAnAddressOfNoInterfaceIsRefused(t *testing.T) {
	a, _ := host(t, "a", &devicetest.GPU{})
	summons(a)
	a.maker.o.Gangs.Address = "192.0.2.1" // has no interface here
	_, err := a.maker.openWith(t.Context(), settings{Devices: 1, Hosts: 2})
	require.ErrorIs(t, err, policy.ErrBadRequest)
	require.ErrorContains(t, err, "this host shares no model with others: no network interface of this host has")
	require.Zero(t, leasedBy(a))
	err = a.maker.Serve(t.Context(), gang.Invitation{Address: "127.0.0.1:1"}, anyRoom)
	require.ErrorIs(t, err, gang.ErrElsewhere)
}

func TestAMembersFailedDeviceEndsTheGang(t *testing.T) {
	a, _ := host(t, "a", &devicetest.GPU{})
	b, ran := host(t, "b", &devicetest.GPU{})
	ended := summons(a, b)
	e := opened(t, a, settings{Devices: 1, Hosts: 2})
	<-ran
	b.library.Xid(0, 79)
	g := e.(*torchEngine).process.(*gangProcess).gang
	<-g.Lost()
	require.ErrorContains(t, g.Err(), "host b is lost")
	require.ErrorContains(t, <-ended, "79")
	require.Zero(t, leasedBy(b))
}

// Without its hosts an engine is not started, and nothing stays leased.
func TestTooFewHosts(t *testing.T) {
	a, _ := host(t, "a", &devicetest.GPU{})
	same, _ := host(t, "a", &devicetest.GPU{})
	none, _ := host(t, "c")
	small, _ := host(t, "d")
	small.maker.devices, small.maker.reason = 0, "no driver"
	ended := summons(a, same, none, small)
	a.maker.o.Gangs.Wait = 300 * time.Millisecond
	_, err := a.maker.openWith(t.Context(), settings{Devices: 1, Hosts: 2})
	require.ErrorContains(t, err, "wait for 1 other hosts")
	require.ErrorContains(t, err, "not all came in 300ms")
	require.Zero(t, leasedBy(a))
	for range 3 {
		err := <-ended
		require.True(t, errors.Is(err, gang.ErrElsewhere) || errors.Is(err, lease.ErrNoDevice), "%v", err)
	}
	a.maker.o.Gangs.Summon = nil
	_, _, err = a.maker.offer(t.Context(), settings{Devices: 1, Hosts: 2})
	require.ErrorContains(t, err, "cannot bring others")
}

// A device that cannot be leased does not count as a slot.
func TestDevicesOfAWorker(t *testing.T) {
	b, _ := host(t, "a", &devicetest.GPU{}, &devicetest.GPU{})
	require.Equal(t, 2, b.maker.Devices())
	e := opened(t, b, settings{Devices: 1, Hosts: 1})
	require.Equal(t, 2, b.maker.Devices(), "leased or not")
	b.library.Xid(0, 79)
	require.Eventually(t, func() bool { return b.maker.Devices() == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, e.Close())
}

func TestOfferOnSeveralHosts(t *testing.T) {
	a, _ := host(t, "a", &devicetest.GPU{Name: "NVIDIA H200"}, &devicetest.GPU{Name: "NVIDIA H200"})
	summons(a)
	_, on, err := a.maker.offer(t.Context(), settings{Devices: 2, Hosts: 3})
	require.NoError(t, err)
	require.Equal(t, "3 hosts × 2 devices, on each 2 × NVIDIA H200", on)
}

var _ policy.Engine = (*gangProcess)(nil)
