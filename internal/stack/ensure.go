package stack

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// The names of the parts.
const (
	partTemporal = "temporal"
	partS3       = "s3"
	partWorker   = "worker"
)

// ensure starts the parts that are needed and do not run yet, and waits until all of them are healthy.
func (s *supervisor) ensure(ctx context.Context, need Need) (Addresses, error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if err := ctx.Err(); err != nil {
		return Addresses{}, fmt.Errorf("start the stack: %w", context.Cause(ctx))
	}
	if s.starts(need) { // what runs already needs no room to begin in
		if err := s.layout.checkSpace(); err != nil {
			return Addresses{}, err
		}
	}
	opts := s.opts
	opts.Need = need
	if err := s.existing.check(ctx, opts, s.say); err != nil {
		return Addresses{}, err
	}
	g, gctx := rescue.WithContext(ctx)
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

// starts reports whether a part is needed that does not run yet.
func (s *supervisor) starts(need Need) bool {
	return need.Temporal && s.existing.temporal == "" && s.part(partTemporal) == nil ||
		need.S3 && s.existing.s3 == "" && s.part(partS3) == nil || need.Worker && s.part(partWorker) == nil
}

// run starts a part unless it is running, and waits until it is healthy.
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

// lost removes a part that was given up, so that a later join tries again, and notifies the leases that need it.
func (s *supervisor) lost(p *part, err error) {
	s.log.Error("part given up", "part", p.name, "error", err)
	s.mu.Lock()
	if s.parts[p.name] == p {
		delete(s.parts, p.name)
	}
	s.mu.Unlock()
	for _, h := range s.holders() {
		if h.needs(p.name) {
			_ = h.wire.send(failed("lost", err))
		}
	}
}

func (s *supervisor) currentAddresses() Addresses {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addresses
}

// healthy is called when a part has become healthy: its addresses are fixed from then on.
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
	told := false
	if s.guard == nil {
		var err error
		if s.guard, err = openGuard(s.port("Temporal's web UI", s.opts.Ports.UI), s.say); err != nil {
			return nil, err
		}
	}
	t := &temporalServer{layout: s.layout, conf: *s.opts.Temporal, namespace: s.addresses.Namespace, say: s.say,
		front: s.port("Temporal", s.opts.Ports.Temporal), guard: s.guard}
	return &part{title: "Temporal", command: t.command, probe: t.probe, diagnose: t.diagnose, signOfStall: signOfStall,
		private: true,
		onHealthy: func() {
			t.healthy()
			s.healthy(func(a *Addresses) { a.Temporal, a.UI = t.front.address(), t.url() },
				fmt.Sprintf("Temporal is ready at %s, web UI %s", t.front.address(), t.url()))
			if !told && sharedHost() {
				s.say(openServerNote)
			}
			told = true
		}}, nil
}

// port returns a port for a use. It waits for a port that a killed predecessor used: its server may be just ending, and
// the commands that had joined know the address.
func (s *supervisor) port(use string, want int) port {
	return port{use: use, want: want, held: slices.Contains(s.inherited, want)}
}

// bucketPattern is S3's rule for names, without rare cases. It also keeps the bucket's folder inside the S3 folder.
var bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)

func (s *supervisor) newS3() (*part, error) {
	if b := s.addresses.S3Bucket; !bucketPattern.MatchString(b) {
		return nil,
			fmt.Errorf("use bucket %q: a name is 3 to 63 lower-case letters, digits and dashes; see ROPEWALK_S3_BUCKET",
				b)
	}
	keys, err := s.layout.loadCredentials()
	if err != nil {
		return nil, err
	}
	v := &s3Server{layout: s.layout, keys: keys, bucket: s.addresses.S3Bucket, region: s.addresses.Region, say: s.say,
		port: s.port("S3", s.opts.Ports.S3)}
	return &part{title: "S3", command: v.command, probe: v.probe, private: true, onHealthy: func() {
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
