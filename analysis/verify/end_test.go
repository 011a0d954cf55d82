package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/internal/testing/tamper"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// No step comes after the last evaluation of a run, so no step names it. The run's end does, and so do the measured
// times: those alone while the run goes on.
func TestVerifyMissesTheLastEvaluation(t *testing.T) {
	for name, o := range map[string]recordtest.Options{
		"of a complete run":   {Steps: 2},
		"of a stopped run":    {Steps: 2, Planned: 4, Stopped: true},
		"before it goes on":   {Steps: 2, Planned: 4, EvaluateAt: map[int]int{2: 1}},
		"of the warm start":   {Steps: 0, Planned: 4},
		"without its own end": {Steps: 2},
	} {
		t.Run(name, func(t *testing.T) {
			objects := mem.New()
			o.Run, o.Seed = "r", 1
			recordtest.Train(t, objects, o)
			require.Empty(t, tamper.Verify(t, objects).Faults)
			key := schema.At("r", 2, schema.StageEvaluate).ManifestKey()
			switch name {
			case "of the warm start":
				key = schema.AtInit("r", schema.StageEvaluate).ManifestKey()
			case "without its own end": // as earlier versions left it
				require.NoError(t, objects.Delete(t.Context(), schema.At("r", 2, schema.StageEnd).ManifestKey()))
			}
			require.NoError(t, objects.Delete(t.Context(), key))
			require.Equal(t, []string{"missing " + key}, tamper.Faults(tamper.Verify(t, objects)))
		})
	}
}
