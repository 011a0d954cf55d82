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

// Gang are the other hosts of one life of an engine, whose ranks they run (Serve).
type Gang interface {
	// Rendezvous is where their ranks and this host's meet.
	Rendezvous() Rendezvous
	// Lost is closed when another host's ranks have ended or cannot be reached; Err then says what is known.
	Lost() <-chan struct{}
	Err() error
	// Close lets the others go; it returns when they have ended their ranks. Again it does nothing.
	Close() error
}

// Rendezvous is where the ranks of several hosts meet under torchrun. It is static: torchrun's other kinds give out ranks in
// the order of the hosts' names, and rank 0 has to be where the engine's host is.
type Rendezvous struct {
	Address string // HOST:PORT, on the host of place 0
	ID      string
	Hosts   int
	Place   int // of this host
	// Interface is the network interface over which ranks speak; "" leaves the choice to the libraries.
	Interface string
}

// meetLimit is how long ranks of one host wait for those of the others, whose PyTorch may have to be read from a slow disk.
const meetLimit = 2 * time.Minute

// flags are torchrun's; without a rendezvous all ranks are of this host.
func (r *Rendezvous) flags() []string {
	if r == nil {
		return []string{"--standalone"}
	}
	return []string{
		"--rdzv-backend", "static", "--rdzv-endpoint", r.Address, "--rdzv-id", r.ID, "--rdzv-conf", fmt.Sprintf("timeout=%d", int(meetLimit.Seconds())),
		"--nnodes", strconv.Itoa(r.Hosts), "--node-rank", strconv.Itoa(r.Place),
	}
}

// environment has the libraries speak over the rendezvous' interface, unless the host's environment has named others.
func (r *Rendezvous) environment(has []string) (out []string) {
	for _, name := range []string{"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} {
		set := slices.ContainsFunc(has, func(line string) bool { return strings.HasPrefix(line, name+"=") })
		if r.Interface != "" && !set {
			out = append(out, name+"="+r.Interface)
		}
	}
	return out
}

// gather brings the other hosts, where there are to be any.
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

// watchGang ends the process when another host is lost: its ranks would wait for theirs for ever.
func (p *process) watchGang() {
	select {
	case <-p.gang.Lost():
		p.end(Died, p.gang.Err().Error())
	case <-p.done:
	}
}

// dismiss lets the other hosts go.
func (p *process) dismiss() {
	if p.gang == nil {
		return
	}
	if err := p.gang.Close(); err != nil {
		p.opts.Logger.Warn("dismiss the engine's other hosts", "error", err)
	}
}
