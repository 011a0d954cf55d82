package torch

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Gang is the other hosts of one process of an engine. They run some of its ranks (Serve).
type Gang interface {
	// Rendezvous returns where the ranks of all hosts meet.
	Rendezvous() Rendezvous
	// Lost is closed when another host's ranks have ended or cannot be reached.
	Lost() <-chan struct{}
	// Err says why the gang was lost, once Lost is closed.
	Err() error
	// Close dismisses the other hosts and returns when they have ended their ranks. A second call does nothing.
	Close() error
}

// Rendezvous is where the ranks of several hosts meet under torchrun. It is static, because torchrun's other kinds
// assign ranks in the order of the hosts' names, and rank 0 must be on the engine's host.
type Rendezvous struct {
	// Address is HOST:PORT. The store of place 0 listens there, and on no other address. For other hosts it may be the
	// address of something that forwards their connections to the store.
	Address string
	ID      string
	Hosts   int
	Place   int // of this host
	// Interface is the network interface over which ranks speak; "" leaves the choice to the libraries.
	Interface string
}

// meetLimit is how long the ranks of one host wait for the ranks of the others. Other hosts may read PyTorch from a
// slow disk.
const meetLimit = 2 * time.Minute

// flags are torchrun's flags (gpu/engine/agent.py). Without a rendezvous all ranks are on this host.
func (r *Rendezvous) flags() []string {
	if r == nil {
		r = &Rendezvous{Address: "127.0.0.1:0", ID: "one-host", Hosts: 1}
	}
	return []string{
		"--rdzv-backend", "bound", "--rdzv-endpoint", r.Address, "--rdzv-id", r.ID, "--rdzv-conf", fmt.Sprintf(
			"place=%d,timeout=%d", r.Place, int(meetLimit.Seconds()),
		),
		"--nnodes", strconv.Itoa(r.Hosts),
	}
}

// environment makes the libraries use the rendezvous' interface, unless the host's environment names another.
func (r *Rendezvous) environment(has []string) (out []string) {
	for _, name := range []string{"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} {
		set := slices.ContainsFunc(has, func(line string) bool { return strings.HasPrefix(line, name+"=") })
		if r.Interface != "" && !set {
			out = append(out, name+"="+r.Interface)
		}
	}
	return out
}

// gather brings in the other hosts, if the engine uses any.
func (p *process) gather(ctx context.Context) error {
	if p.opts.Hosts == 1 {
		return nil
	}
	gang, err := p.opts.Gather(ctx)
	if err != nil {
		return fmt.Errorf("gather %d hosts: %w", p.opts.Hosts, err)
	}
	p.gang = gang
	meet := gang.Rendezvous()
	if _, _, err := net.SplitHostPort(meet.Address); err != nil || meet.Hosts != p.opts.Hosts || meet.Place != 0 {
		return fmt.Errorf("gather %d hosts: they were gathered for %+v", p.opts.Hosts, meet)
	}
	p.opts.meet = &meet
	return nil
}

// watchGang ends the process when another host is lost, because its ranks would wait for the lost ranks forever.
func (p *process) watchGang() {
	select {
	case <-p.gang.Lost():
		p.end(lostDied, p.gang.Err().Error())
	case <-p.done:
	}
}

// releaseHosts releases the other hosts.
func (p *process) releaseHosts() {
	if p.gang == nil {
		return
	}
	if err := p.gang.Close(); err != nil {
		p.opts.Logger.Warn("dismiss the engine's other hosts", "error", err)
	}
}
