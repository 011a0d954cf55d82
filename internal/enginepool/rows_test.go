package enginepool

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// sampling is a sampler on the CPU engine, with two committed policies.
func sampling(t *testing.T, wrap ...func(policy.Engine) policy.Sampler) (*Sampler, [2]Version) {
	t.Helper()
	engine, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	record := commit.New(mem.New())
	sampler := policy.Sampler(engine)
	for _, f := range wrap {
		sampler = f(engine)
	}
	_, s := New(Options{Record: record, Sampler: sampler, Scratch: t.TempDir()}).CPU()
	var out [2]Version
	for i := range out {
		dir := t.TempDir()
		require.NoError(t, checkpoint.Init(dir, checkpoint.Shape{Vocab: 64, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1,
			HeadDim: 16, FFN: 64, Positions: 128, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}, uint64(i), nil))
		digest, err := checkpoint.Digest(dir)
		require.NoError(t, err)
		m := schema.NewManifest(schema.At("r", i+1, "publish"), strings.Repeat("c", 64), strings.Repeat("d", 64))
		c, err := record.PutFolder(t.Context(), dir, digest, m.Place.CheckpointPrefix(VersionName(i+1, digest)),
			nil)
		require.NoError(t, err)
		m.Checkpoint = &c
		_, ref, _, err := record.Commit(t.Context(), m)
		require.NoError(t, err)
		out[i] = Version{Manifest: ref, Digest: digest}
	}
	return s, out
}

func randomRow(seed uint64) policy.BatchRow {
	rng := rand.New(rand.NewPCG(seed, 1))
	row := policy.BatchRow{Stream: seed, MaxTokens: 1 + rng.IntN(40), Temperature: 1, Stop: []int32{3, 4}}
	for range 1 + rng.IntN(50) {
		row.Prefix = append(row.Prefix, int32(5+rng.IntN(50)))
	}
	if seed%3 == 0 {
		row.Top, row.TopTokens = 4, 1+int(seed%5)
	}
	return row
}

// Rows of two versions that come and go are those of Generate, while others use the engine, callers give up, and rows
// are refused.
func TestRowsAreThoseOfGenerate(t *testing.T) {
	s, versions := sampling(t)
	rows := s.Rows(128)
	if rows == nil {
		t.Skip("without the own kernels, numbers depend on the rows that generate together")
	}
	ctx := t.Context()
	want := map[uint64]policy.Generated{}
	generate := func(p policy.Sampler, row policy.BatchRow) (policy.Generated, error) {
		return p.Generate(ctx, joinRows([]*asked{{row: row}}))
	}
	const all = 600 // more than generate at once
	of := func(i uint64) Version { return versions[i/100%2] }
	for _, v := range versions {
		require.NoError(t, s.Use(ctx, v, func(p policy.Sampler) error {
			for i := range uint64(all) {
				if of(i) != v {
					continue
				}
				g, err := generate(p, randomRow(i))
				if err != nil {
					return err
				}
				want[i] = g
			}
			return nil
		}))
	}
	var group sync.WaitGroup
	for i := range uint64(all) {
		group.Go(func() {
			switch {
			case i%50 == 7: // a caller that gives up
				gone, cancel := context.WithCancel(ctx)
				cancel()
				_, err := rows.Generate(gone, of(i), randomRow(i))
				require.ErrorIs(t, err, context.Canceled)
			case i%50 == 9: // a row that no batch can hold
				bad := randomRow(i)
				bad.MaxTokens = 1000
				_, err := rows.Generate(ctx, of(i), bad)
				require.ErrorIs(t, err, policy.ErrBadRequest)
			case i%50 == 10: // another user of the engine
				require.NoError(t, s.Use(ctx, of(i), func(p policy.Sampler) error {
					g, err := generate(p, randomRow(i))
					require.Equal(t, want[i], g)
					return err
				}))
			default:
				g, err := rows.Generate(ctx, of(i), randomRow(i))
				require.NoError(t, err)
				require.Equal(t, want[i].Tokens, g.Tokens, "row %d", i)
				require.Equal(t, want[i].LogProbs, g.LogProbs)
				require.Equal(t, want[i].Entropies, g.Entropies)
				require.Equal(t, want[i].Finish, g.Finish)
				require.Equal(t, want[i].Top, g.Top)
			}
		})
	}
	group.Wait()
	rows.Close()
	rows.Close()
	require.Nil(t, s.stream.batch, "the last user frees its memory")
}

// crowd is an engine whose batches have little room for keys and values.
type crowd struct {
	policy.Engine
	tokens int
	full   int // rows that found no room; of the driver alone
	held   int // most tokens that were reserved at once
}

func (c *crowd) Batch(ctx context.Context, role policy.Role, o policy.BatchOptions) (policy.Batch, error) {
	o.Tokens = c.tokens
	b, err := c.Engine.(policy.Batcher).Batch(ctx, role, o)
	return &crowded{b, c}, err
}

type crowded struct {
	policy.Batch
	in *crowd
}

func (b *crowded) Add(ctx context.Context, row policy.BatchRow) (int64, error) {
	id, err := b.Batch.Add(ctx, row)
	if errors.Is(err, policy.ErrFull) {
		b.in.full++
	}
	b.in.held = max(b.in.held, b.Usage().Held)
	return id, err
}

// Rows that find the cache full wait for those that generate, and are what they are with room for all.
func TestRowsOfAFullCache(t *testing.T) {
	var engine *crowd
	s, versions := sampling(t, func(e policy.Engine) policy.Sampler {
		engine = &crowd{Engine: e, tokens: 128}
		return engine
	})
	rows := s.Rows(128)
	if rows == nil {
		t.Skip("without the own kernels, numbers depend on the rows that generate together")
	}
	want := make([]policy.Generated, 60)
	require.NoError(t, s.Use(t.Context(), versions[0], func(p policy.Sampler) (err error) {
		for i := range want {
			if want[i], err = p.Generate(t.Context(), joinRows([]*asked{{row: randomRow(uint64(i))}})); err != nil {
				return err
			}
		}
		return nil
	}))
	var group sync.WaitGroup
	for i := range want {
		group.Go(func() {
			g, err := rows.Generate(t.Context(), versions[0], randomRow(uint64(i)))
			require.NoError(t, err)
			require.Equal(t, want[i].Tokens, g.Tokens, "row %d", i)
			require.Equal(t, want[i].LogProbs, g.LogProbs)
		})
	}
	group.Wait()
	rows.Close()
	require.Positive(t, engine.full, "rows had to wait")
	require.LessOrEqual(t, engine.held, engine.tokens)
}

// panics is an engine that panics, with a batch or without one.
type panics struct{ loads }

func (*panics) Capabilities() policy.Capabilities {
	can := able
	can.BatchInvariant = true
	return can
}

func (*panics) Generate(context.Context, policy.GenerateRequest) (policy.Generated, error) {
	panic("attention over no tokens")
}

// batching is a batch whose first step panics.
type batching struct{ panics }

func (b *batching) Batch(context.Context, policy.Role, policy.BatchOptions) (policy.Batch, error) {
	return b, nil
}

func (*batching) Add(context.Context, policy.BatchRow) (int64, error) { return 1, nil }

func (*batching) Step(context.Context) ([]policy.BatchEvent, error) {
	panic("attention over no tokens")
}

func (*batching) Remove(context.Context, int64) error { return nil }

func (*batching) Usage() policy.BatchUsage { return policy.BatchUsage{} }

func (*batching) Close() error { return nil }

// A panic ends the rows that it concerns, and no caller waits for ever.
func TestRowsOfAnEngineThatPanics(t *testing.T) {
	for _, engine := range []policy.Sampler{&panics{}, &batching{}} {
		_, s := New(Options{Sampler: engine}).CPU()
		s.Mark(policy.RolePolicy, "d", false)
		rows := s.Rows(10)
		for range 2 {
			_, err := rows.Generate(t.Context(), Version{Digest: "d"}, randomRow(1))
			require.ErrorContains(t, err, "attention over no tokens")
		}
		rows.Close()
	}
}

// An engine whose numbers depend on the batch has no rows that come and go.
func TestRowsNeedBatchInvariance(t *testing.T) {
	_, s := New(Options{Sampler: &loads{}}).CPU()
	require.Nil(t, s.Rows(10))
	require.Nil(t, (&Sampler{Resident: s.Resident, sampler: &loads{}}).Rows(10), "an engine that is leased")
}
