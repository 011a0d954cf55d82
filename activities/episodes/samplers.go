package episodes

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
)

// lookEvery is how often a shard looks for a newer policy, at most.
const lookEvery = time.Second

// Samplers are the policies that may write turns of a step, the oldest first: the one that its rollout begins with and,
// with pipeline.in_flight, those that the run has published since. The heads of the run's steps say which are
// published, so that workers on any machine learn of them. None is newer than the policy that the step updates.
type Samplers struct {
	record.Records
	scope api.Scope
	every time.Duration

	mu     sync.Mutex
	known  []api.PolicyRef
	next   int // the step whose update makes the next policy; scope.Step: the step updates the newest of known
	looked time.Time
}

// NewSamplers finds the policies that may write turns of a step now. began is the policy that its rollout begins with.
func NewSamplers(ctx context.Context, d *stage.Worker, scope api.Scope, recipe *recipes.Recipe,
	began api.PolicyRef) (*Samplers, error) {
	s := &Samplers{Records: d.Records, scope: scope, every: cmp.Or(d.LookEvery, lookEvery),
		known: []api.PolicyRef{began}, next: scope.Step}
	if recipe.InFlight() {
		s.next = max(1, scope.Step-recipe.Staleness())
	}
	return s, s.look(ctx)
}

// look finds the policies that were published since the last look. The caller holds the lock.
func (s *Samplers) look(ctx context.Context) error {
	s.looked = time.Now()
	for s.next < s.scope.Step {
		m, ref, found, err := s.UpdateOf(ctx, s.scope.Run, s.next)
		if err != nil || !found || m.Checkpoint == nil {
			return err
		}
		s.known = append(s.known, api.PolicyRef{Manifest: ref, Digest: m.Checkpoint.Digest, Step: s.next})
		s.next++
	}
	return nil
}

// Now returns the newest policy, for a turn that begins now. While the record cannot be read, that is the newest one
// known.
func (s *Samplers) Now(ctx context.Context) api.PolicyRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next < s.scope.Step && time.Since(s.looked) >= s.every {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "look for a newer policy", "step", s.next, "error", err)
		}
	}
	return s.Newest()
}

// Newest returns the newest policy that is known.
func (s *Samplers) Newest() api.PolicyRef { return s.known[len(s.known)-1] }

// Of returns the policy of a digest, the newest of several.
func (s *Samplers) Of(digest string) (api.PolicyRef, bool) {
	for i := len(s.known) - 1; i >= 0; i-- {
		if s.known[i].Digest == digest {
			return s.known[i], true
		}
	}
	return api.PolicyRef{}, false
}
