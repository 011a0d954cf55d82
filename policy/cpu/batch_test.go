package cpu

import (
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// wide has heads whose keys lie in panels, and narrow has not.
var (
	wide = checkpoint.Shape{
		Vocab: 61, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 72, Positions: 1024,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
	}
	narrow = checkpoint.Shape{
		Vocab: 23, Hidden: 12, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 6, FFN: 20, Positions: 1024,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
	}
)

// batchEngine opens an engine with a model whose distributions are neither flat nor certain.
func batchEngine(t *testing.T, shape checkpoint.Shape, blas string, threads int) *engine[float32] {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	c := loaded[float32](t, shape, blas, 1).checkpoint()
	for _, w := range c.Weights {
		scale(w.Data, 0.5)
	}
	_, err := checkpoint.Write(dir, c)
	require.NoError(t, err)
	e, err := open[float32](Options{Threads: threads, BLAS: blas})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	return e
}

// alone generates a row by itself.
func alone(t *testing.T, e policy.Engine, r policy.BatchRow) policy.Generated {
	t.Helper()
	res, err := e.Generate(t.Context(), policy.GenerateRequest{
		Role: policy.RolePolicy, Prefixes: [][]int32{r.Prefix}, Streams: []uint64{r.Stream},
		MaxTokens: []int{r.MaxTokens}, Temperature: r.Temperature, Truncation: r.Truncation, Stop: r.Stop,
	})
	require.NoError(t, err)
	return res
}

// served is what a batch brought for one row.
type served struct {
	row                 policy.BatchRow
	tokens              []int32
	logProbs, entropies []float32
	top                 [][]policy.TokenLogProb
	scores              []policy.BatchScore
	finish              policy.Finish
	reused              int
}

func (s *served) take(t *testing.T, e policy.BatchEvent) {
	t.Helper()
	require.NoError(t, e.Err)
	s.scores, s.finish, s.reused = append(s.scores, e.Scores...), e.Finish, s.reused+e.Reused
	if e.Sampled {
		s.tokens, s.logProbs = append(s.tokens, e.Token), append(s.logProbs, e.LogProb)
		s.entropies, s.top = append(s.entropies, e.Entropy), append(s.top, e.Top)
	}
}

// randomRow makes a row that often begins like others: with a common text, or with all of an earlier row.
func randomRow(rng *rand.Rand, shape checkpoint.Shape, texts [][]int32, earlier []*served) policy.BatchRow {
	r := policy.BatchRow{Stream: rng.Uint64(), MaxTokens: 1 + rng.IntN(30), Temperature: float64(rng.IntN(3)) / 2}
	if rng.IntN(5) == 0 {
		r.MaxTokens = 280
	}
	text := texts[rng.IntN(len(texts))]
	r.Prefix = slices.Clone(text[:1+rng.IntN(len(text))])
	if len(earlier) > 0 && rng.IntN(2) == 0 {
		e := earlier[rng.IntN(len(earlier))]
		r.Prefix = slices.Concat(e.row.Prefix, e.tokens)
	}
	for range rng.IntN(8) {
		r.Prefix = append(r.Prefix, int32(rng.IntN(shape.Vocab)))
	}
	if most := shape.Positions - r.MaxTokens; len(r.Prefix) > most {
		r.Prefix = r.Prefix[:most]
	}
	if rng.IntN(3) == 0 {
		r.Truncation = policy.Truncation{TopK: 1 + rng.IntN(9), TopP: 0.9}
	}
	if rng.IntN(2) == 0 {
		r.Stop = []int32{int32(rng.IntN(shape.Vocab))}
	}
	return r
}

// TestBatchEqualsGenerate: whatever other rows come and go, and whatever is kept of earlier ones, a row gets the tokens
// that Generate returns. With the own kernels all numbers are equal to the bit.
func TestBatchEqualsGenerate(t *testing.T) {
	requireLibrary(t, blasOwn)
	for name, shape := range map[string]checkpoint.Shape{"panels": wide, "rows": narrow} {
		t.Run(name, func(t *testing.T) {
			batchEqualsGenerate(t, batchEngine(t, shape, blasOwn, 1), shape, blasOwn)
		})
	}
}

// TestBatchTakesOverMemory: that is so with every library, and whatever the memory that a batch takes over from a
// closed one holds.
func TestBatchTakesOverMemory(t *testing.T) {
	for name, shape := range map[string]checkpoint.Shape{"panels": wide, "rows": narrow} {
		for _, blas := range libraries(t) {
			t.Run(name+"/"+blas, func(t *testing.T) {
				e := batchEngine(t, shape, blas, 2)
				e.caches = slices.Repeat([]float32{float32(math.NaN())}, 1<<20)
				left := &e.caches[0]
				batchEqualsGenerate(t, e, shape, blas)
				require.Same(t, left, &e.caches[0], "it is left to the next batch")
				large := keptBytes/(4*e.roles[policy.RolePolicy].tokenFloats()) + 1
				b, err := e.Batch(t.Context(), policy.RolePolicy, policy.BatchOptions{Rows: 1, Tokens: large})
				require.NoError(t, err)
				require.Nil(t, e.caches)
				require.NoError(t, b.Close())
				require.Nil(t, e.caches, "too much to be kept")
			})
		}
	}
}

func batchEqualsGenerate(t *testing.T, e *engine[float32], shape checkpoint.Shape, blas string) {
	rng := rand.New(rand.NewPCG(5, 6))
	b, err := e.Batch(t.Context(), policy.RolePolicy, policy.BatchOptions{Rows: 6, Tokens: 4000})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	texts := randomSequences(3, shape.Vocab, 700, 90, 20)
	in := map[int64]*served{}
	var done []*served
	full, removed, all := 0, 0, 40
	if blas != blasOwn { // libraries multiply small matrices slowly
		all = 12
	}
	var next *policy.BatchRow
	for added := 0; len(done) < all || len(in) > 0; {
		if added < all && (len(in) == 0 || rng.IntN(4) == 0) {
			if next == nil {
				r := randomRow(rng, shape, texts, done)
				next = &r
			}
			switch id, err := b.Add(t.Context(), *next); {
			case errors.Is(err, policy.ErrFull):
				full++
			default:
				require.NoError(t, err)
				in[id], next = &served{row: *next}, nil
				added++
			}
		}
		if rng.IntN(20) == 0 { // a row that leaves early changes nothing for the others
			if id, err := b.Add(t.Context(), randomRow(rng, shape, texts, done)); err == nil {
				for range rng.IntN(3) {
					events, err := b.Step(t.Context())
					require.NoError(t, err)
					done = takeAll(t, in, done, events)
				}
				require.NoError(t, b.Remove(t.Context(), id))
				removed++
			}
		}
		events, err := b.Step(t.Context())
		require.NoError(t, err)
		done = takeAll(t, in, done, events)
	}
	require.Positive(t, full)
	require.Positive(t, removed)
	reused := 0
	for i, s := range done {
		want := alone(t, e, s.row)
		require.Equal(t, want.Tokens[0], s.tokens, "row %d", i)
		require.Equal(t, want.Finish[0], s.finish)
		if blas == blasOwn {
			require.Equal(t, want.LogProbs[0], s.logProbs, "row %d", i)
			require.Equal(t, want.Entropies[0], s.entropies, "row %d", i)
		} else {
			require.InDeltaSlice(t, want.LogProbs[0], s.logProbs, 1e-4, "row %d", i)
		}
		if reused += s.reused; s.reused > 0 {
			require.Less(t, s.reused, len(s.row.Prefix))
		}
	}
	require.Positive(t, reused)
	u := b.Usage()
	require.Zero(t, u.Rows)
	require.Zero(t, u.Held)
	require.LessOrEqual(t, u.Kept, u.Tokens)
	require.Less(t, u.ReusedTokens, u.PrefixTokens)
}

func takeAll(t *testing.T, in map[int64]*served, done []*served, events []policy.BatchEvent) []*served {
	t.Helper()
	for _, e := range events {
		s, ok := in[e.Row]
		if !ok {
			continue // of a row that is removed
		}
		s.take(t, e)
		if e.Finish != "" {
			done = append(done, s)
			delete(in, e.Row)
		}
	}
	return done
}

// drain steps until no row is left.
func drain(t *testing.T, b policy.Batch, in map[int64]*served) {
	t.Helper()
	for b.Usage().Rows > 0 {
		events, err := b.Step(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			in[e.Row].take(t, e)
		}
	}
}

// TestBatchScoresAsForward: a prefix that is read in pieces has the log-probabilities of one forward pass.
func TestBatchScoresAsForward(t *testing.T) {
	for _, shape := range []checkpoint.Shape{wide, narrow} {
		for _, blas := range libraries(t) {
			e := batchEngine(t, shape, blas, 2)
			sequences := randomSequences(9, shape.Vocab, 1, 700, 5, 600, 1000)
			out, err := e.Forward(t.Context(), policy.ForwardRequest{
				Role: policy.RolePolicy, Sequences: sequences, Temperature: 1, Outputs: policy.OutLogProb,
			})
			require.NoError(t, err)
			b, err := e.Batch(t.Context(), policy.RolePolicy, policy.BatchOptions{})
			require.NoError(t, err)
			in := map[int64]*served{}
			var order []*served
			for i, s := range sequences {
				row := policy.BatchRow{Prefix: s, Score: true, Top: 1 + i, Temperature: 1, MaxTokens: i % 2}
				id, err := b.Add(t.Context(), row)
				require.NoError(t, err)
				in[id] = &served{row: row}
				order = append(order, in[id])
			}
			drain(t, b, in)
			for i, s := range order {
				require.Len(t, s.scores, len(sequences[i])-1)
				require.Len(t, s.tokens, s.row.MaxTokens)
				require.Equal(t, policy.FinishLength, s.finish)
				for j, score := range s.scores {
					want := out.LogProbs[i][j+1]
					if blas == blasOwn {
						require.Equal(t, want, score.LogProb, "sequence %d, token %d", i, j+1)
					}
					require.InDelta(t, want, score.LogProb, 1e-4)
					require.Len(t, score.Top, 1+i)
					for k, top := range score.Top {
						require.True(t, k == 0 || score.Top[k-1].LogProb >= top.LogProb)
						if top.Token == sequences[i][j+1] {
							require.Equal(t, score.LogProb, top.LogProb)
						}
					}
				}
			}
			require.NoError(t, b.Close())
		}
	}
}

// TestBatchNamesTheLikeliest: the likeliest tokens are those of the distribution that is sampled.
func TestBatchNamesTheLikeliest(t *testing.T) {
	e := batchEngine(t, wide, "", 2)
	b, err := e.Batch(t.Context(), policy.RolePolicy, policy.BatchOptions{})
	require.NoError(t, err)
	in := map[int64]*served{}
	add := func(r policy.BatchRow) *served {
		id, err := b.Add(t.Context(), r)
		require.NoError(t, err)
		in[id] = &served{row: r}
		return in[id]
	}
	prefix := randomSequences(2, wide.Vocab, 12)[0]
	greedy := add(policy.BatchRow{Prefix: prefix, MaxTokens: 9, Top: 3})
	whole := add(policy.BatchRow{Prefix: prefix, MaxTokens: 9, Temperature: 0.7, Top: wide.Vocab})
	cut := add(policy.BatchRow{
		Prefix: prefix, MaxTokens: 9, Temperature: 0.7, Top: 9, Truncation: policy.Truncation{TopK: 4},
	})
	begun := add(policy.BatchRow{Prefix: prefix, MaxTokens: 9, Top: 3, TopTokens: 2})
	drain(t, b, in)
	require.Equal(t, greedy.top[:2], begun.top[:2])
	for _, top := range begun.top[2:] {
		require.Empty(t, top)
	}
	_, err = b.Add(t.Context(), policy.BatchRow{Prefix: prefix, MaxTokens: 9, Top: 3, TopTokens: -1})
	require.ErrorIs(t, err, policy.ErrBadRequest)
	for i, top := range greedy.top {
		require.Len(t, top, 3)
		require.Equal(t, greedy.tokens[i], top[0].Token)
		require.Equal(t, greedy.logProbs[i], top[0].LogProb)
	}
	for i, top := range whole.top {
		require.InDelta(t, 1, mass(top), 1e-5)
		at := slices.IndexFunc(top, func(p policy.TokenLogProb) bool { return p.Token == whole.tokens[i] })
		require.Equal(t, whole.logProbs[i], top[at].LogProb)
	}
	for _, top := range cut.top {
		require.Len(t, top, 4)
		require.InDelta(t, 1, mass(top), 1e-5)
	}
	require.NoError(t, b.Close())
}

func mass(top []policy.TokenLogProb) (sum float64) {
	for _, p := range top {
		sum += float64(expT(p.LogProb))
	}
	return sum
}

// TestBatchReusesPrefixes: rows with the same prefix compute it once, even if they join together, and the next turn of
// a conversation computes its new tokens only.
func TestBatchReusesPrefixes(t *testing.T) {
	e := batchEngine(t, wide, "", 2)
	b, err := e.Batch(t.Context(), policy.RolePolicy, policy.BatchOptions{})
	require.NoError(t, err)
	in := map[int64]*served{}
	prefix := randomSequences(4, wide.Vocab, 100)[0]
	var rows []*served
	for i := range 4 {
		id, err := b.Add(t.Context(), policy.BatchRow{Prefix: prefix, Stream: uint64(i), MaxTokens: 20, Temperature: 1})
		require.NoError(t, err)
		in[id] = &served{row: policy.BatchRow{Prefix: prefix}}
		rows = append(rows, in[id])
	}
	drain(t, b, in)
	require.Zero(t, rows[0].reused)
	for _, r := range rows[1:] {
		require.Equal(t, len(prefix)-1, r.reused)
	}
	turn := slices.Concat(prefix, rows[2].tokens, randomSequences(5, wide.Vocab, 10)[0])
	id, err := b.Add(t.Context(), policy.BatchRow{Prefix: turn, MaxTokens: 1})
	require.NoError(t, err)
	in[id] = &served{}
	drain(t, b, in)
	require.Equal(t, len(prefix)+19, in[id].reused, "the last token of a response has no keys yet")
	require.NoError(t, b.Close())
}

func TestBatchRefuses(t *testing.T) {
	e := batchEngine(t, narrow, "", 1)
	b, err := e.Batch(t.Context(), policy.RolePolicy, policy.BatchOptions{Rows: 1, Tokens: 64})
	require.NoError(t, err)
	for name, r := range map[string]policy.BatchRow{
		"empty":       {MaxTokens: 1},
		"vocabulary":  {Prefix: []int32{23}, MaxTokens: 1},
		"negative":    {Prefix: []int32{-1}, MaxTokens: 1},
		"budget":      {Prefix: []int32{1}, MaxTokens: -1},
		"no budget":   {Prefix: []int32{1}},
		"room":        {Prefix: []int32{1}, MaxTokens: 64},
		"top":         {Prefix: []int32{1}, MaxTokens: 1, Top: -1},
		"temperature": {Prefix: []int32{1}, MaxTokens: 1, Temperature: -1},
		"truncation":  {Prefix: []int32{1}, MaxTokens: 1, Truncation: policy.Truncation{TopP: 2}},
		"stop":        {Prefix: []int32{1}, MaxTokens: 1, Stop: []int32{23}},
	} {
		_, err := b.Add(t.Context(), r)
		require.ErrorIs(t, err, policy.ErrBadRequest, name)
	}
	_, err = b.Add(t.Context(), policy.BatchRow{Prefix: []int32{1}, MaxTokens: 3})
	require.NoError(t, err)
	_, err = b.Add(t.Context(), policy.BatchRow{Prefix: []int32{1}, MaxTokens: 3})
	require.ErrorIs(t, err, policy.ErrFull)
	require.NoError(t, b.Remove(t.Context(), 99), "a row that is not there")

	dir := t.TempDir()
	_, err = e.Save(t.Context(), policy.RolePolicy, filepath.Join(dir, "c"))
	require.NoError(t, err)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, filepath.Join(dir, "c"), false))
	_, err = b.Step(t.Context())
	require.ErrorIs(t, err, policy.ErrWrongVersion)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	_, err = b.Step(t.Context())
	require.ErrorIs(t, err, policy.ErrLost)
}

// TestPool: regions never overlap, and everything that is given back can be taken again.
func TestPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := newPool(1024)
	var taken []region
	for range 5000 {
		if i := rng.IntN(len(taken) + 1); i < len(taken) && rng.IntN(2) == 0 {
			p.release(taken[i])
			taken = slices.Delete(taken, i, i+1)
			continue
		}
		if r, ok := p.allocate(1 + rng.IntN(200)); ok {
			require.Zero(t, r.room%cacheBlock)
			for _, other := range taken {
				require.True(t, r.base+r.room <= other.base || other.base+other.room <= r.base)
			}
			taken = append(taken, r)
		}
	}
	for _, r := range taken {
		p.release(r)
	}
	require.Equal(t, []region{{0, 1024}}, p.free)
}
