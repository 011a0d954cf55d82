package stack

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// Join gives a command the stack that it needs. It joins the servers that run in the root folder, and starts those that
// are missing. It returns when everything that is needed is healthy. Servers that the environment selects are used as
// they are; if nothing else is needed, nothing is started.
func Join(ctx context.Context, opts Options) (*Lease, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	ex, err := findExisting()
	if err != nil {
		return nil, err
	}
	var telling sync.Mutex // servers start side by side
	tell := opts.Progress
	opts.Progress = func(line string) {
		telling.Lock()
		defer telling.Unlock()
		tell(line)
	}
	l := &Lease{opts: opts, files: layout{opts.Root}, existing: ex, addresses: ex.addresses(opts),
		lost: make(chan struct{}), kept: make(chan struct{})}
	keeping, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	if err := l.join(ctx); err != nil {
		close(l.kept)
		_ = l.Close() // the reason why nothing was joined says more
		return nil, err
	}
	go l.keep(keeping)
	return l, nil
}

func (l *Lease) join(ctx context.Context) error {
	servers := l.existing.missing(l.opts.Need)
	first := len(servers) > 0
	for _, name := range servers {
		s, err := l.files.running(name)
		if err != nil {
			return err
		}
		first = first && s.PID == 0
		if err := l.agree(s); err != nil {
			return err
		}
	}
	// Before anything is started or made: the environment may be wrong.
	if err := l.existing.check(ctx, l.opts, l.opts.Progress); err != nil || len(servers) == 0 {
		return err
	}
	if err := l.files.makeFolders(l.opts.Progress); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	if first {
		l.opts.Progress("starting the local stack in " + l.files.root)
	}
	return l.useAll(ctx, servers)
}

// useAll uses the servers. The worker needs the addresses of the other two.
func (l *Lease) useAll(ctx context.Context, servers []string) error {
	for _, name := range servers {
		users, err := takeLock(ctx, l.files.users(name), shared) // waits for a supervisor that is stopping
		if err != nil {
			return fmt.Errorf("join the local stack: %w", err)
		}
		l.uses = append(l.uses, &use{server: name, users: users})
	}
	g, together := rescue.WithContext(ctx)
	for _, u := range l.uses {
		if u.server != workerName {
			g.Go(func() error { return l.useServer(together, u) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if last := l.uses[len(l.uses)-1]; last.server == workerName {
		return l.useServer(ctx, last)
	}
	return nil
}

// useServer waits until a server is healthy, and takes over its addresses.
func (l *Lease) useServer(ctx context.Context, u *use) error {
	alive, err := l.files.supervised(u.server)
	if err != nil {
		return err
	}
	if s, err := l.files.readState(u.server); err == nil && (s.Healthy || !alive) {
		u.told, u.lines = s.PID, s.Lines // it was said to others
	}
	s, err := l.await(ctx, u)
	if err != nil {
		return err
	}
	if err := l.agree(s); err != nil { // another command may have started it meanwhile
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addresses, err = l.files.with(l.addresses, s.Addresses)
	return err
}

// agree returns an error if the command's environment selects other servers or names than a server has.
func (l *Lease) agree(s state) error {
	e, want, has := l.existing, l.existing.addresses(l.opts), s.Addresses
	existing := func(address, local string) string {
		if local != "" {
			return ""
		}
		return address
	}
	const local = "a local one"
	for _, s := range []struct{ what, want, have, current string }{
		// A child that was given our Env may select the local server's own address.
		{"Temporal", e.temporal, existing(has.Temporal, has.UI), has.Temporal},
		{"S3", e.s3, existing(has.S3Endpoint, has.S3Folder), has.S3Endpoint},
		{"namespace", want.Namespace, has.Namespace, has.Namespace},
		{"bucket", want.S3Bucket, has.S3Bucket, has.S3Bucket},
	} {
		if s.current != "" && s.want != s.have && (s.want == "" || s.want != s.current) {
			return fmt.Errorf("join the running stack in %s: its %s is %s, this command's environment selects %s: "+
				"end the commands that use it first, or set ROPEWALK_HOME to another folder",
				l.files.root, s.what, cmp.Or(s.have, local), cmp.Or(s.want, local))
		}
	}
	return nil
}
