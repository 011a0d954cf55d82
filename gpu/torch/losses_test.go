package torch

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// lossBound is the greatest relative L2 error of a parameter's gradient in float32.
const lossBound = 1e-5

const lossTemperature = 0.8

// TestRealLossesThroughTheEngine: each loss of rl/loss, turned into cotangents here and sent back through the engine,
// has the gradient that autograd finds for the same loss written in PyTorch.
func TestRealLossesThroughTheEngine(t *testing.T) {
	pythontest.NeedLong(t)
	engine := fromPool(t, 1)
	defer engine.Close()
	peer := startOracle(t)
	// Long enough for covariance rules to mark some tokens; the last row is masked as a whole.
	rows := randomRows(3, tiny.Vocab, 40, 40, 40, 40, 40, 40)
	folders := map[policy.Role]string{
		policy.RolePolicy: initialised(t, tiny, 31), policy.RoleCritic: criticFolder(t, tiny),
	}
	for _, c := range losstest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			role := policy.RolePolicy
			if c.Value != nil {
				role = policy.RoleCritic
			}
			require.NoError(t, engine.Load(t.Context(), role, folders[role], true))
			req := policy.ForwardRequest{
				Role: role, Sequences: rows, Temperature: lossTemperature,
				Outputs: policy.OutLogProb | policy.OutEntropy, Keep: true,
			}
			if role == policy.RoleCritic {
				req.Outputs = policy.OutValue
			}
			out, err := engine.Forward(t.Context(), req)
			require.NoError(t, err)
			batch := around(out)
			ours, plan, err := losstest.Planned(c, batch)
			require.NoError(t, err)
			var e loss.Evaluator[float32]
			result, err := losstest.Evaluate(c, &e, ours, batch.Values, plan)
			require.NoError(t, err)
			cotangents := policy.Cotangents{LogProbs: result.Cotangents, Entropies: result.EntropyCotangents}
			if role == policy.RoleCritic {
				cotangents = policy.Cotangents{Values: result.Cotangents}
			}
			require.NoError(t, engine.Backward(t.Context(), role, out.Kept, cotangents))
			got := gradients(t, engine, role)

			want, value := peer.ask(t, folders[role], role == policy.RoleCritic, rows, c, ours, batch.Values)
			for _, name := range want.missing {
				require.Zero(t, norm(got[name]), "%s: the loss does not depend on it", name)
				delete(got, name)
			}
			worst, at := distance(t, want.gradients, got)
			t.Logf("parity: %-20s gradient %.1e (%s)", c.Name, worst, at)
			require.LessOrEqual(t, worst, lossBound, at)
			require.InDelta(t, value, result.Loss, 1e-5*(1+math.Abs(value)))
		})
	}
}

func norm(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// around draws a batch whose policies lie around what the engine gave.
func around(out policy.TokenOutputs) losstest.Batch[float32] {
	values := out.LogProbs
	if values == nil {
		values = out.Values
	}
	b := losstest.New[float32](
		rand.New(rand.NewPCG(5, 8)), len(values), len(values[0]), losstest.Spread{Drift: 0.3, Tokens: true},
	)
	clear(b.Rows[len(b.Rows)-1].Mask)
	r := rand.New(rand.NewPCG(9, 9))
	near := func(x float32) float32 { return min(0, x+float32(0.3*r.NormFloat64())) }
	for i := range b.Rows {
		row, v := &b.Rows[i], &b.Values[i]
		row.Mask[0], row.Count, v.Count = 0, int32(1+i%3), int32(1+i%3)
		for k, x := range values[i] {
			row.LogProbs[k], row.Old[k], row.Ref[k], row.Rollout[k] = x, near(x), near(x), near(x)
			v.Values[k], v.Old[k], v.Returns[k] = x, x+float32(r.NormFloat64()), x+float32(r.NormFloat64())
			if out.Entropies != nil {
				row.Entropies[k] = out.Entropies[i][k]
			}
		}
	}
	return b
}

// oracle is one Python process that answers jobs line by line.
type oracle struct{ *bench.Peer }

type oracleAnswer struct {
	gradients tensors
	missing   []string
}

func startOracle(t *testing.T) *oracle {
	t.Helper()
	return &oracle{pythontest.Start(t, torchPython(t), "testdata/losses.py")}
}

func (o *oracle) ask(
	t *testing.T, dir string, critic bool, sequences [][]int32, c losstest.Case, rows []loss.Row[float32],
	values []loss.ValueRow[float32],
) (a oracleAnswer, value float64) {
	t.Helper()
	batch := map[string]any{}
	column := func(name string, of func(i int) any) {
		list := make([]any, len(rows))
		for i := range rows {
			list[i] = of(i)
		}
		batch[name] = list
	}
	column("mask", func(i int) any { return rows[i].Mask })
	column("count", func(i int) any { return rows[i].Count })
	column("old", func(i int) any { return rows[i].Old })
	column("adv", func(i int) any { return rows[i].Advantages })
	column("ref", func(i int) any { return rows[i].Ref })
	if rows[0].Marks != nil {
		column("marks", func(i int) any { return rows[i].Marks })
	}
	if critic {
		column("old", func(i int) any { return values[i].Old })
		column("adv", func(i int) any { return values[i].Returns })
	}
	file := filepath.Join(t.TempDir(), "gradients.safetensors")
	var said struct {
		Loss    float64
		Missing []string
	}
	require.NoError(t, o.Ask(t.Context(), map[string]any{
		"dir": dir, "critic": critic, "temperature": lossTemperature, "sequences": sequences, "batch": batch,
		"params": paramsOf(c), "out": file,
	}, &said))
	return oracleAnswer{readTensors(t, file), said.Missing}, said.Loss
}

// paramsOf are a case's settings as the Python formulas know them.
func paramsOf(c losstest.Case) map[string]any {
	out := c.Params()
	out["mode"], out["horizon"] = c.Objective.Aggregation.Mode, max(c.Objective.Aggregation.Horizon, 1)
	return out
}
