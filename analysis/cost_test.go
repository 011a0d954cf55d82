package analysis_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestCostAddsUpMeasuredActivities(t *testing.T) {
	update, adopted := ran(schema.StageUpdate, 20, 30), ran(schema.StageRollout, 0, 900)
	update.CPUSeconds, update.DevicePeakBytes = 4, new(int64(1<<30))
	adopted.CPUSeconds, adopted.Adopted = 50, new(true)
	rollout := ran(schema.StageRollout, 10, 25)
	rollout.CPUSeconds = 7.5
	unfinished := schema.TimingRow{Stage: schema.StageSandbox, StartMicros: 1}
	var c analysis.Cost
	c.Add([]schema.TimingRow{update, adopted, rollout, unfinished}, 4)
	require.Equal(t, analysis.Cost{Activities: 2, CPUSeconds: 11.5, GPUSeconds: 40,
		From: time.Unix(10, 0).UTC(), To: time.Unix(30, 0).UTC()}, c)
}

func TestCostOfARun(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2})
	r := analysis.New(objects)
	all, err := r.Runs(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	c, err := r.Cost(t.Context(), all[0].Run)
	require.NoError(t, err)
	listed, err := objects.List(t.Context(), schema.RunPrefix(all[0].Run))
	require.NoError(t, err)
	var size int64
	for _, o := range listed {
		size += o.Size
	}
	require.Equal(t, int64(len(listed)), c.Objects)
	require.Equal(t, size, c.Bytes)
	figures, err := r.Figures(t.Context(), all[0].Run)
	require.NoError(t, err)
	require.Equal(t, figures.Trajectories, c.Trajectories)
	require.Positive(t, c.Trajectories)
	_, err = r.Cost(t.Context(), "nothing")
	require.ErrorIs(t, err, analysis.ErrNoRun)
}

func TestCostIsPrintedInAllAndPerThousandTrajectories(t *testing.T) {
	c := analysis.Cost{Trajectories: 2000, Objects: 10, Bytes: 5e9, Activities: 7, CPUSeconds: 7200, GPUSeconds: 1800,
		From: time.Unix(10, 0), To: time.Unix(100, 5e8)}
	var out bytes.Buffer
	require.NoError(t, c.Write(&out))
	require.Equal(t, `used by 7 activities in 1m30s
                   in all  per 1,000 trajectories
      objects          10                       5
        bytes  5000000000              2500000000
  CPU seconds      7200.0                  3600.0
  GPU seconds      1800.0                   900.0
`, out.String())
	out.Reset()
	require.NoError(t, analysis.Cost{Objects: 3}.Write(&out))
	require.Contains(t, out.String(), "objects       3                       –\n")
}
