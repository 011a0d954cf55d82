package enginepool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/store/s3"
)

// fetchVariable makes the test fetch a model of Qwen3-0.6B's shape (596 M parameters, 2.4 GB) from a real S3 server.
const fetchVariable = "ROPEWALK_TEST_FETCH"

// metered counts the bytes of weights that are read from a store.
type metered struct {
	store.Store
	weights atomic.Int64
}

func (m *metered) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := m.Store.Get(ctx, key)
	m.count(key, data)
	return data, err
}

func (m *metered) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	data, err := m.Store.GetRange(ctx, key, offset, length)
	m.count(key, data)
	return data, err
}

func (m *metered) count(key string, data []byte) {
	if strings.HasSuffix(key, ".safetensors") {
		m.weights.Add(int64(len(data)))
	}
}

// A worker fetches each version of the policy once, however many shards it samples with it.
func TestAPolicyIsFetchedOncePerVersion(t *testing.T) {
	shape := checkpoint.Shape{Vocab: 64, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 32,
		Positions: 32, RopeTheta: 10_000, NormEps: 1e-6, Pad: -1}
	from := &metered{Store: mem.New()}
	large := os.Getenv(fetchVariable) != ""
	if large {
		shape = checkpoint.Shape{Vocab: 151_936, Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128,
			FFN: 3072, Positions: 40_960, RopeTheta: 1e6, NormEps: 1e-6, Pad: -1}
		server := storetest.Versitygw(t)
		s, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: "policies", AccessKey: server.AccessKey,
			SecretKey: server.SecretKey})
		require.NoError(t, err)
		require.NoError(t, s.EnsureBucket(t.Context()))
		from.Store = s
	}
	record := commit.New(from)
	made := []Version{committedPolicy(t, record, shape, 1)}
	if !large {
		made = append(made, committedPolicy(t, record, shape, 2))
	}
	engine, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	pool := New(Options{Record: commit.New(from), Sampler: engine, Trainer: engine, Scratch: t.TempDir()})
	var recipe recipes.Recipe
	recipe.Engine.Kind = "cpu"
	sampler, release, err := pool.Sampler(t.Context(), "r", &recipe, false)
	require.NoError(t, err)
	defer release(false)
	use := func(v Version) error {
		return sampler.Use(t.Context(), v, func(policy.Sampler) error { return nil })
	}
	for _, v := range made {
		before, began := from.weights.Load(), time.Now()
		var shards sync.WaitGroup
		failures := make([]error, 4)
		for i := range failures {
			shards.Go(func() { failures[i] = use(v) })
		}
		shards.Wait()
		took := time.Since(began)
		require.NoError(t, errors.Join(failures...))
		m, err := record.Read(t.Context(), v.Manifest)
		require.NoError(t, err)
		var bytes int64
		for _, f := range m.Checkpoint.Files {
			if checkpoint.IsWeights(f.Name) {
				bytes += f.Bytes
			}
		}
		require.Equal(t, bytes, from.weights.Load()-before, "four shards fetch the weights once")
		if large {
			began = time.Now()
			require.NoError(t, Fetch(t.Context(), record, *m.Checkpoint, t.TempDir(), false))
			fetched := time.Since(began)
			began = time.Now()
			require.NoError(t, use(v))
			fmt.Printf("%d bytes: fetched, checked and loaded in %.1f s; fetched and checked alone in %.1f s "+
				"(%.0f MB/s); used again after %v\n", bytes, took.Seconds(), fetched.Seconds(),
				float64(bytes)/1e6/fetched.Seconds(), time.Since(began).Round(time.Microsecond))
		}
	}
}

// committedPolicy commits a random model as the policy after a step.
func committedPolicy(t *testing.T, record *commit.Writer, shape checkpoint.Shape, step int) Version {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, checkpoint.Init(dir, shape, uint64(step), nil))
	m := schema.NewManifest(schema.At("r", step, schema.StageUpdate), strings.Repeat("0", 64),
		strings.Repeat("0", 64))
	c, err := StoreWhole(t.Context(), record, dir, m.Place)
	require.NoError(t, err)
	m.Checkpoint = &c
	_, ref, _, err := record.Commit(t.Context(), m)
	require.NoError(t, err)
	return Version{Manifest: ref, Digest: c.Digest}
}
