package stack

import (
	"context"
	"fmt"
	"regexp"

	"golang.org/x/sync/errgroup"
)

// Names of the parts.
const (
	partTemporal = "temporal"
	partS3       = "s3"
	partWorker   = "worker"
)

// ensure starts the parts that a need asks for and that do not run yet, and waits until all of
// them are healthy.
func (s *supervisor) ensure(ctx context.Context, need Need) (Addresses, error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if err := ctx.Err(); err != nil {
		return Addresses{}, fmt.Errorf("start the stack: %w", context.Cause(ctx))
	}
	if err := s.layout.checkSpace(); err != nil {
		return Addresses{}, err
	}
	opts := s.opts
	opts.Need = need
	if err := s.existing.check(ctx, opts, s.say); err != nil {
		return Addresses{}, err
	}
	g, gctx := errgroup.WithContext(ctx)
	if need.Temporal && s.existing.temporal == "" {
		g.Go(func() error { return s.run(gctx, partTemporal, s.newTemporal) })
	}
	if need.S3 && s.existing.s3 == "" {
		g.Go(func() error { return s.run(gctx, partS3, s.newS3) })
	}
	if err := g.Wait(); err != nil {
		return Addresses{}, err
	}
	if need.Worker {
		if err := s.run(ctx, partWorker, s.newWorker); err != nil {
			return Addresses{}, err
		}
	}
	return s.currentAddresses(), nil
}

// run starts a part unless it runs, and waits until it is healthy.
func (s *supervisor) run(ctx context.Context, name string, make func() (*part, error)) error {
	p := s.part(name)
	if p == nil {
		var err error
		if p, err = make(); err != nil {
			return err
		}
		p.name, p.layout, p.tuning, p.spawn, p.say, p.log = name, s.layout, s.opts.tuning, s.spawn, s.say, s.log
		p.gaveUp = s.lost
		s.mu.Lock()
		s.parts[name] = p
		s.mu.Unlock()
		p.begin()
	}
	return p.wait(ctx)
}

// lost forgets a part that was given up, so that a later join tries anew, and tells the leases that need it.
func (s *supervisor) lost(p *part, err error) {
	s.log.Error("part given up", "part", p.name, "error", err)
	s.mu.Lock()
	if s.parts[p.name] == p {
		delete(s.parts, p.name)
	}
	s.mu.Unlock()
	for _, h := range s.holders() {
		if h.needs(p.name) {
			_ = h.wire.send(reply{Kind: "lost", Text: err.Error()})
		}
	}
}

func (s *supervisor) currentAddresses() Addresses {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addresses
}

// healthy is called when a part became healthy: its addresses are settled now.
func (s *supervisor) healthy(change func(a *Addresses), line string) {
	s.mu.Lock()
	change(&s.addresses)
	s.mu.Unlock()
	if err := s.recordState(); err != nil {
		s.log.Warn("record state", "error", err)
	}
	s.say(line)
}

func (s *supervisor) newTemporal() (*part, error) {
	t := &temporalServer{layout: s.layout, conf: *s.opts.Temporal, namespace: s.addresses.Namespace, say: s.say,
		front: port{use: "Temporal", want: s.opts.Ports.Temporal}, web: port{use: "Temporal's web UI", want: s.opts.Ports.UI}}
	return &part{title: "Temporal", command: t.command, probe: t.probe, onHealthy: func() {
		t.healthy()
		s.healthy(func(a *Addresses) { a.Temporal, a.UI = t.front.address(), t.url() },
			fmt.Sprintf("Temporal is ready at %s, web UI %s", t.front.address(), t.url()))
	}}, nil
}

// bucketPattern is S3's rule, less rare cases; it keeps the bucket's folder inside the S3 folder, too.
var bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)

func (s *supervisor) newS3() (*part, error) {
	if b := s.addresses.S3Bucket; !bucketPattern.MatchString(b) {
		return nil, fmt.Errorf("use bucket %q: a name is 3 to 63 lower-case letters, digits and dashes; see ROPEWALK_S3_BUCKET", b)
	}
	keys, err := s.layout.loadCredentials()
	if err != nil {
		return nil, err
	}
	v := &s3Server{layout: s.layout, keys: keys, bucket: s.addresses.S3Bucket, region: s.addresses.Region, say: s.say,
		port: port{use: "S3", want: s.opts.Ports.S3}}
	return &part{title: "S3", command: v.command, probe: v.probe, onHealthy: func() {
		v.healthy()
		s.healthy(func(a *Addresses) {
			a.S3Endpoint, a.S3Folder, a.AccessKey, a.SecretKey = v.url(), s.layout.s3(), keys.AccessKey, keys.SecretKey
		}, "S3 is ready at "+v.url())
	}}, nil
}

func (s *supervisor) newWorker() (*part, error) {
	w := &workerProcess{layout: s.layout, argv: s.opts.Worker, addresses: s.currentAddresses}
	return &part{title: "the worker", command: w.command, probe: w.probe, killOrphans: true, onHealthy: func() {
		s.healthy(func(*Addresses) {}, "the worker is ready")
	}}, nil
}
