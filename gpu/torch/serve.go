package torch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Serve runs this host's ranks of an engine whose rank 0 is on another host, until they end or ctx does. It returns
// when all of them have ended: nil if they ended with the engine, otherwise an error with their last lines.
func Serve(ctx context.Context, o Options, meet Rendezvous) error {
	o.Hosts, o.meet = meet.Hosts, &meet
	o, err := o.withDefaults()
	if err == nil && (meet.Place < 1 || meet.Place >= meet.Hosts) {
		err = fmt.Errorf("place %d of %d hosts", meet.Place, meet.Hosts)
	}
	if err != nil {
		return fmt.Errorf("serve an engine's ranks: %w", err)
	}
	dir, err := makeFolder(o.Dir)
	if err != nil {
		return fmt.Errorf("serve an engine's ranks: %w", err)
	}
	defer os.RemoveAll(dir)
	p := &process{opts: o, dir: dir}
	if err := p.runRanks(ctx); err != nil {
		if last := p.last(); last != "" {
			err = fmt.Errorf("%w; they wrote last:\n%s", err, last)
		}
		return fmt.Errorf("serve an engine's ranks: %w", err)
	}
	return nil
}

// runRanks starts the ranks and waits for their end.
func (p *process) runRanks(ctx context.Context) error {
	main, err := extract(p.opts, filepath.Join(p.dir, "engine"))
	if err != nil {
		return err
	}
	cmd := p.opts.newCommand(main, p.dir, "", "")
	if p.pipe, p.exit, err = spawn(cmd); err != nil {
		return err
	}
	p.tree.root, p.lines = cmd.Process.Pid, followOutput(p.pipe, p.opts.Logger)
	p.opts.Logger.Info(
		"serve an engine's ranks", "pid", cmd.Process.Pid, "place", p.opts.meet.Place, "hosts", p.opts.meet.Hosts,
		"rendezvous", p.opts.meet.Address,
	)
	select {
	case <-p.exit.done:
		err = p.exit.err
	case <-ctx.Done():
		// Ranks that notice the end themselves need not be killed.
		select {
		case <-p.exit.done:
		case <-time.After(serveGrace):
		}
		err = context.Cause(ctx)
	}
	p.tree.findRanks(true) // to wait for their end; if torchrun has ended, the kernel has ended them
	p.killAll()
	return err
}

// serveGrace is how long ranks may take to end after they are told to, before they are killed.
const serveGrace = time.Second

// last returns the last lines that the ranks wrote.
func (p *process) last() string {
	if p.lines == nil {
		return ""
	}
	return p.lines.last(lastInNote)
}
