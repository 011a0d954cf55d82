package activities_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// Arithmetic with the Python tool trains in the protocols of tool calls: the clone of the teacher calls the tool and
// answers in the protocol, the record verifies, and its pure stages give the same rows again. Other runs use rstar2;
// TestAStepThatSearches has prs, from which search and aepo differ only in names. TestDemonstrationsInEveryProtocol in
// package rollout covers them all.
func TestProtocolsTrain(t *testing.T) {
	for _, p := range []protocol.Protocol{protocol.Hermes{}, protocol.TIR{}} {
		spec := p.Spec()
		t.Run(spec.Name, func(t *testing.T) {
			objects := mem.New()
			b := newBench(t, objects)
			trainTiny(t, b, "r", "steps=2", "rollout.protocol="+spec.Name, "warm_start.steps=120",
				"warm_start.batch=32")
			ran, answered, right, updated := 0, 0, 0, 0
			for step := 1; step <= 2; step++ {
				for _, c := range stepRows[schema.ToolCallRow](t, objects, "r", step, schema.StageSandbox) {
					if c.Status == "ok" && c.Name == protocol.Python.Name && c.Code != "" {
						ran++
					}
				}
				for _, row := range stepRows[schema.TrajectoryRow](t, objects, "r", step, schema.StageAssemble) {
					if row.HasAnswer && row.Finish == "answered" && row.ToolCalls > row.ToolErrors {
						answered++
					}
				}
				for _, row := range stepRows[schema.RewardRow](t, objects, "r", step, schema.StageReward) {
					if row.Success {
						right++
					}
				}
				for _, row := range stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout) {
					if row.Turn > 0 && !strings.HasSuffix(row.Observation, "<|im_start|>assistant\n") {
						require.NotEmpty(t, spec.Stops, "%q does not begin a turn", row.Observation)
					}
				}
				updated += len(stepRows[schema.UpdateRow](t, objects, "r", step, schema.StageUpdate))
			}
			require.Positive(t, ran, "no call ran")
			require.Positive(t, answered, "no trajectory has an answer after a call that succeeded")
			require.Positive(t, right, "no answer is right")
			require.Positive(t, updated)
			v, err := verify.Run(t.Context(), objects, "r")
			require.NoError(t, err)
			require.Empty(t, v.Faults, "%v", v.Faults)
			checked(t, objects, "r")
			t.Logf("%d calls ran, %d trajectories answered after one, %d are right", ran, answered, right)
		})
	}
}
