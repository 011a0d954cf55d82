package gc_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/gc"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/store/s3"
)

// racer commits stages of a run, as workers do, while orphans are collected.
type racer struct {
	store.Store
	clock  *atomic.Int64 // nanoseconds; it jumps by more than the minimum age at any moment
	record *commit.Writer
}

func (r *racer) jump(rng *rand.Rand, most time.Duration) {
	if r.clock != nil {
		r.clock.Add(rng.Int64N(int64(most)))
	}
}

// attempt puts one of a few contents of a place and commits it. It puts objects that an earlier attempt left again.
func (r *racer) attempt(ctx context.Context, rng *rand.Rand, place schema.Place, step int, most time.Duration) error {
	rows := []schema.RewardRow{{
		GroupID: schema.GroupID(step, 0), TrajectoryID: schema.TrajectoryID(step, 0, 0), Reward: float64(rng.IntN(4)),
		Verdict: "exact",
	}}
	info, err := commit.PutRows(ctx, r.record, place, rows)
	if err != nil {
		return err
	}
	r.jump(rng, most) // a machine that slept
	if rng.IntN(3) == 0 {
		return nil // killed
	}
	m := schema.NewManifest(place, lost, lost)
	m.Shards = []schema.ShardInfo{info}
	_, _, _, err = r.record.Commit(ctx, m)
	return err
}

// step runs several attempts at each shard concurrently until all have committed, then commits the stage and the head.
func (r *racer) step(ctx context.Context, seed uint64, step int, most time.Duration) error {
	stage := schema.At("r", step, schema.StageReward)
	var parts [2]schema.Ref
	for shard := range parts {
		place := stage.WithShard(shard)
		var group sync.WaitGroup
		failures := make([]error, 3)
		for a := range failures {
			rng := rand.New(rand.NewPCG(seed, uint64(100*step+10*shard+a)))
			group.Go(func() {
				for range 3 {
					if err := r.attempt(ctx, rng, place, step, most); err != nil {
						failures[a] = err
						return
					}
				}
			})
		}
		group.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(seed, uint64(step)))
		for found := false; !found; {
			if err := r.attempt(ctx, rng, place, step, most); err != nil {
				return err
			}
			var err error
			if _, parts[shard], found, err = r.record.Lookup(ctx, place); err != nil {
				return err
			}
		}
	}
	m := schema.NewManifest(stage, lost, lost)
	m.Parts = parts[:]
	_, ref, _, err := r.record.Commit(ctx, m)
	if err != nil {
		return err
	}
	head, err := schema.NewHead("r", stage.Step, ref)
	if err != nil {
		return err
	}
	_, _, _, err = r.record.CommitHead(ctx, head)
	return err
}

// dangling returns the keys that manifests name and that do not exist.
func dangling(t *testing.T, objects store.Store) (out []string) {
	listed, err := objects.List(t.Context(), "runs/")
	require.NoError(t, err)
	there := map[string]bool{}
	for _, o := range listed {
		there[o.Key] = true
	}
	for _, o := range listed {
		if _, err := schema.ParseManifestKey(o.Key); err != nil {
			continue
		}
		data, err := objects.Get(t.Context(), o.Key)
		require.NoError(t, err)
		m, err := schema.DecodeManifest(data)
		require.NoError(t, err)
		for _, s := range m.Shards {
			if !there[s.Key] {
				out = append(out, s.Key)
			}
		}
	}
	return out
}

// TestNoNamedKeyIsDeletedWhileWorkersCommit commits steps with several attempts at each shard, which die, sleep longer
// than the minimum age and put again what others left, while orphans are collected all the time. No commit fails, no
// manifest names a key that does not exist, and at the end no orphan is left.
func TestNoNamedKeyIsDeletedWhileWorkersCommit(t *testing.T) {
	for seed := range uint64(4) {
		clock := &atomic.Int64{}
		clock.Store(start.UnixNano())
		now := func() time.Time { return time.Unix(0, clock.Load()) }
		objects := mem.NewAt(now)
		race(t, &racer{Store: objects, clock: clock, record: commit.New(objects)}, seed, 6,
			gc.Options{MinAge: time.Hour, Delete: true, Now: now}, 3*time.Hour)
		clock.Add(int64(2 * time.Hour))
		_, err := gc.Collect(t.Context(), objects, gc.Options{MinAge: time.Hour, Delete: true, Now: now})
		require.NoError(t, err)
		checkClean(t, objects)
	}
}

// TestCollectsOnARealServer does the same with workers on versitygw and without a minimum age.
func TestCollectsOnARealServer(t *testing.T) {
	server := storetest.Versitygw(t)
	objects, err := s3.New(s3.Options{Endpoint: server.Endpoint, AccessKey: server.AccessKey,
		SecretKey: server.SecretKey})
	require.NoError(t, err)
	require.NoError(t, objects.EnsureBucket(t.Context()))
	later := func() time.Time { return time.Now().Add(time.Minute) } // the server's clock may be a little ahead
	race(t, &racer{Store: objects, record: commit.New(objects)}, 1, 3, gc.Options{Delete: true, Now: later}, 1)
	_, err = gc.Collect(t.Context(), objects, gc.Options{Delete: true, Now: later})
	require.NoError(t, err)
	checkClean(t, objects)
}

func race(t *testing.T, r *racer, seed uint64, steps int, o gc.Options, most time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var collector sync.WaitGroup
	var failure error
	collector.Go(func() {
		for failure == nil && ctx.Err() == nil {
			_, failure = gc.Collect(t.Context(), r.Store, o)
		}
	})
	for step := 1; step <= steps; step++ {
		if err := r.step(t.Context(), seed, step, most); err != nil {
			stop()
			collector.Wait()
			require.NoError(t, err)
		}
	}
	stop()
	collector.Wait()
	require.NoError(t, failure)
	require.Empty(t, dangling(t, r.Store))
}

// checkClean checks that every shard in the store is named by a manifest, and that there are manifests.
func checkClean(t *testing.T, objects store.Store) {
	t.Helper()
	require.Empty(t, dangling(t, objects))
	shards, err := objects.List(t.Context(), "runs/run=r/table=")
	require.NoError(t, err)
	manifests, err := objects.List(t.Context(), "runs/run=r/manifests/")
	require.NoError(t, err)
	require.Len(t, shards, 2*len(manifests)/3, "each step has two shards, their manifests and the stage's")
	require.NotEmpty(t, shards)
}
