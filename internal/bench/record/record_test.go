package record

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// TestComparesBothSides measures a small run once: each set has all comparisons, and their ratios are of this run.
func TestComparesBothSides(t *testing.T) {
	t.Setenv("ROPEWALK_PYTHON", pythontest.Need(t, "the comparison", "pyarrow"))
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	bucket := t.TempDir()
	recordtest.Unpack(t, objects, bucket)
	streamedBytes = 1 << 20
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	measure := Case.New(flags)
	require.NoError(t, flags.Parse([]string{"-bucket", bucket, "-run", "r", "-rounds", "1"}))
	r := &bench.Report{Dir: t.TempDir()}
	require.NoError(t, measure(t.Context(), r))
	require.Len(t, r.Rows, 14)
	require.Contains(t, r.Rows[0].Note, "of run r, ")
	for _, row := range r.Rows[1:] {
		for _, f := range row.Figures {
			require.Positive(t, f.Value, row)
		}
	}
	require.NoError(t, flags.Parse([]string{"-bucket", t.TempDir(), "-run", ""}))
	require.ErrorContains(t, measure(t.Context(), r), "train one (make run)")
}
