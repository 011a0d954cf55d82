package rollout

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
)

func TestMediansAndGoals(t *testing.T) {
	cores := float64(runtime.NumCPU())
	of := func(mode string, orchestration float64, load Load, steps ...step) measured {
		return measured{outcome: outcome{Orchestration: orchestration, RLSeconds: 10}, mode: mode, steps: steps,
			loads: []Load{{Events: 1, Shards: 1}, load}}
	}
	r := &bench.Report{Dir: t.TempDir()}
	report(r, []measured{
		of("interleaved", 0.04, Load{Events: 121, Shards: 4}, step{1, cores, 100}, step{1.2, cores, 120}),
		of("interleaved", 0.12, Load{Events: 150, Shards: 8}, step{1.4, cores, 280}),
		of("staged", 0.2, Load{Events: 300, Shards: 4}, step{2, cores, 100}),
	}, RoundTrips{Stage: 51, Bare: 10})
	require.Equal(t, []bench.Row{
		{What: "interleaved", Figures: []bench.Figure{bench.Of("rollout s", 1.2), bench.Of("processor s", cores),
			bench.Of("rollout ÷ bound", 1.2).AtMost(1.15), bench.Of("tokens/s", 100),
			bench.Of("orchestration %", 8).AtMost(5), bench.Of("RL s", 10),
			bench.Of("events of a step", 121).AtMost(120)}},
		{What: "staged", Figures: []bench.Figure{bench.Of("rollout s", 2), bench.Of("processor s", cores),
			bench.Of("rollout ÷ bound", 2), bench.Of("tokens/s", 50), bench.Of("orchestration %", 20),
			bench.Of("RL s", 10), bench.Of("events of a step", 300)}},
		{What: "a stage without work", Figures: []bench.Figure{bench.Of("ms", 51),
			bench.Of("ms of a bare activity", 10), bench.Of("ratio", 5.1).AtMost(5)}},
	}, r.Rows)
	r = &bench.Report{Dir: t.TempDir()}
	report(r, nil, RoundTrips{Stage: 50, Bare: 10})
	require.Len(t, r.Rows, 1, "no run was measured")
}
