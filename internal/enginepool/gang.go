package enginepool

import (
	"cmp"
	"context"
	"fmt"
	"time"

	program "github.com/ropewalk/ropewalk/gpu/engine"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
)

// Gangs configures how a worker's engines run on several hosts.
type Gangs struct {
	Host    string // this host's name
	Address string // the IP address by which other hosts reach it
	TLS     gang.TLS
	// Summon asks the given number of workers on other hosts to join with the invitation (Maker.Serve) as soon as they
	// are free, until dismiss is called. It does not wait for them.
	Summon func(ctx context.Context, i gang.Invitation, members int) (dismiss func(), err error)
	// Wait bounds how long an engine waits for its hosts; 0 means defaultGather.
	Wait time.Duration
}

// defaultGather is how long an engine waits for its hosts. It is longer than an idle engine keeps the hosts of others.
const defaultGather = 10 * time.Minute

// gathered is torch.Gang over a call.
type gathered struct {
	*gang.Call
	meet    torch.Rendezvous
	dismiss func()
}

func (g *gathered) Rendezvous() torch.Rendezvous { return g.meet }

// Close dismisses the hosts and withdraws the part of the summons that no worker has answered yet.
func (g *gathered) Close() error {
	err := g.Call.Close()
	g.dismiss()
	return err
}

// gather brings in the other hosts of an engine with these options.
func (m *Maker) gather(ctx context.Context, s settings, o torch.Options) (_ torch.Gang, err error) {
	m.warn(o.Device)
	as, network, err := m.gangOptions()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", policy.ErrBadRequest, err)
	}
	call, err := gang.Open(as, s.Hosts, gang.Work{
		Ranks: max(1, s.Devices), Device: o.Device, Dtype: s.Dtype, Deterministic: s.Deterministic,
		Checkpointing:    s.Checkpointing,
		OffloadOptimizer: s.OffloadOptimizer, Memory: s.Memory,
	})
	if err != nil {
		return nil, err
	}
	g := &gathered{Call: call, dismiss: func() {}}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	if g.dismiss, err = m.o.Gangs.Summon(ctx, call.Invitation(), s.Hosts-1); err != nil {
		g.dismiss = func() {}
		return nil, fmt.Errorf("summon other hosts: %w", err)
	}
	limit := cmp.Or(m.o.Gangs.Wait, defaultGather)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not all came in %s", limit))
	defer cancel()
	orders, err := call.Gather(ctx)
	if err != nil {
		return nil, err
	}
	g.meet = rendezvous(orders, network)
	return g, nil
}

// gangOptions describe this host and name the interface that its ranks use.
func (m *Maker) gangOptions() (o gang.Options, network string, err error) {
	g := m.o.Gangs
	if network, err = gang.Interface(g.Address); err != nil {
		return o, "", fmt.Errorf("this host shares no model with others: %w (--host-address)", err)
	}
	return gang.Options{
		Host: g.Host, Address: g.Address, Engine: program.Digest(), TLS: g.TLS, Logger: m.o.Logger,
	}, network, nil
}

// warn says, once, which connections between hosts this program does not encrypt.
func (m *Maker) warn(device string) {
	m.warned.Do(func() {
		if !m.o.Gangs.TLS.On() {
			m.o.Logger.Warn("hosts that share a model speak without TLS: name certificates with --host-tls-cert, " +
				"--host-tls-key and --host-tls-ca, or let no one else reach their network")
		}
		library := "NCCL"
		if device == torch.CPU {
			library = "Gloo"
		}
		m.o.Logger.Warn(library + " does not encrypt the tensors that hosts with a shared model exchange: let no one " +
			"else reach their network, or encrypt it (docs/gpu.md)")
	})
}

func rendezvous(o gang.Orders, network string) torch.Rendezvous {
	return torch.Rendezvous{Address: o.Rendezvous, ID: o.ID, Hosts: o.Hosts, Place: o.Place, Interface: network}
}

// Serve implements Torch: it takes a place in a gang and runs its ranks on leased devices, if there are any.
func (m *Maker) Serve(ctx context.Context, i gang.Invitation, room Room) error {
	as, network, err := m.gangOptions()
	if err != nil {
		return fmt.Errorf("serve %s: %w: %w", i.Address, gang.ErrElsewhere, err)
	}
	place, err := gang.Join(ctx, as, i)
	if err != nil {
		return err
	}
	ctx, cancel := place.Context(ctx)
	defer cancel()
	err = m.serve(ctx, place, network, room)
	why := "done"
	if err != nil {
		why = err.Error()
	}
	place.Leave(why)
	return err
}

// serve returns when no rank is left and the devices are released.
func (m *Maker) serve(ctx context.Context, place *gang.Membership, network string, room Room) error {
	w := place.Work
	s := settings{
		Devices: w.Ranks, Dtype: w.Dtype, Deterministic: w.Deterministic, Checkpointing: w.Checkpointing,
		OffloadOptimizer: w.OffloadOptimizer, Memory: w.Memory,
	}
	m.warn(w.Device)
	if on := m.device(); on != w.Device {
		return fmt.Errorf("%w: the engine runs on %s, this host has %s", gang.ErrElsewhere, w.Device, on)
	}
	release, err := room(ctx, w.Ranks)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer release()
	l, err := m.leaseDevices(ctx, s)
	if err != nil {
		return causeOf(ctx, err)
	}
	if l != nil {
		defer l.Release()
	}
	o, err := m.options(ctx, s, l)
	if err != nil {
		return err
	}
	orders, err := place.Ready(ctx)
	if err != nil {
		return err
	}
	return m.runRanks(ctx, l, o, rendezvous(orders, network))
}

// runRanks runs the ranks. A device that fails ends them.
func (m *Maker) runRanks(ctx context.Context, l *lease.Lease, o torch.Options, meet torch.Rendezvous) error {
	if l != nil {
		under, cancel := l.Context(ctx)
		defer cancel()
		ctx = under
	}
	return causeOf(ctx, m.o.serve(ctx, o, meet))
}

// causeOf is the cause of a context that has ended, otherwise the error.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (m *Maker) device() string {
	if m.devices == 0 {
		return torch.CPU
	}
	return torch.CUDA
}

// onHosts describes how many hosts share a model, and the share of each.
func onHosts(s settings, what, share string) string {
	if s.Hosts > 1 {
		return fmt.Sprintf("%d hosts × %d %s, on each %s", s.Hosts, max(1, s.Devices), what, share)
	}
	return share
}
