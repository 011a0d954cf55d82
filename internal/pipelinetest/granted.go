package pipelinetest

import (
	"context"
	"io"
	"slices"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/internal/grants"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/presigned"
	"github.com/ropewalk/ropewalk/store/s3"
)

// granted fails the test if an activity on the queue sandbox asks the store for what a presigner refuses its workers.
type granted struct {
	store.Store
	t      testing.TB
	policy presigned.Policy
}

func grantedOnly(t testing.TB, objects store.Store) store.Store {
	return granted{objects, t, grants.SandboxQueue()}
}

// sandboxed reports whether workers of the queue sandbox execute an activity.
func sandboxed(name string) bool {
	return slices.ContainsFunc(stages.All(), func(s stages.Stage) bool {
		return slices.ContainsFunc(s.Activities, func(a stages.Activity) bool {
			return a.Name == name && a.Queue == stages.Sandbox
		})
	})
}

func (g granted) check(ctx context.Context, o s3.Operation, key string) {
	if !activity.IsActivity(ctx) {
		return
	}
	at := activity.GetInfo(ctx)
	if at.TaskQueue == stages.Sandbox && !g.policy.Permits(o, key) {
		g.t.Errorf("%s, on the queue sandbox, wants to %s %s, which internal/grants does not permit",
			at.ActivityType.Name, o, key)
	}
}

// Get implements store.Store.
func (g granted) Get(ctx context.Context, key string) ([]byte, error) {
	g.check(ctx, s3.OpGet, key)
	return g.Store.Get(ctx, key)
}

// GetRange implements store.Store.
func (g granted) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	g.check(ctx, s3.OpGet, key)
	return g.Store.GetRange(ctx, key, offset, length)
}

// Put implements store.Store.
func (g granted) Put(ctx context.Context, key string, data []byte) error {
	g.check(ctx, s3.OpPut, key)
	return g.Store.Put(ctx, key, data)
}

// PutFrom implements store.Store.
func (g granted) PutFrom(ctx context.Context, key string, content io.ReaderAt, size int64) error {
	g.check(ctx, s3.OpPut, key)
	return g.Store.PutFrom(ctx, key, content, size)
}

// PutIfAbsent implements store.Store.
func (g granted) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	g.check(ctx, s3.OpPutIfAbsent, key)
	return g.Store.PutIfAbsent(ctx, key, data)
}

// List implements store.Store.
func (g granted) List(ctx context.Context, prefix string) ([]store.Object, error) {
	g.check(ctx, s3.OpList, prefix)
	return g.Store.List(ctx, prefix)
}

// Delete implements store.Store.
func (g granted) Delete(ctx context.Context, key string) error {
	g.check(ctx, s3.OpDelete, key)
	return g.Store.Delete(ctx, key)
}

// registry registers the activities of the queue sandbox from one worker's state, and the others from another's.
type registry struct {
	worker.ActivityRegistry
	sandbox bool
}

// RegisterActivityWithOptions implements worker.ActivityRegistry.
func (r registry) RegisterActivityWithOptions(a any, o activity.RegisterOptions) {
	if sandboxed(o.Name) == r.sandbox {
		r.ActivityRegistry.RegisterActivityWithOptions(a, o)
	}
}

// register registers the activities of deps, except that those of the queue sandbox are of another worker if there is
// one.
func register(env worker.ActivityRegistry, deps, sandbox *activities.Deps) {
	if sandbox == nil {
		deps.Register(env)
		return
	}
	deps.Register(registry{env, false})
	sandbox.Register(registry{env, true})
}
