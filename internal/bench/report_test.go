package bench

import (
	"context"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A case writes what it has found, and fails if a goal is missed.
func TestCase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	c := Case{Name: "x", New: func(flags *flag.FlagSet) func(context.Context, *Report) error {
		n := flags.Int("n", 1, "a number")
		return func(_ context.Context, r *Report) error {
			r.Add("a", Of("ms", float64(*n)).AtMost(2), Of("rate", 3).AtLeast(3))
			r.Note("b", "it is not %s", "there")
			return nil
		}
	}}
	require.NoError(t, c.Run(t.Context(), []string{"-out", file, "-n", "2"}))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got Report
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, "it is not there", got.Rows[1].Note)
	require.EqualError(t, c.Run(t.Context(), []string{"-out", file, "-n", "5"}),
		"goal missed: a: ms is 5, want at most 2")
	require.Error(t, c.Run(t.Context(), []string{"-m"}))
}

func TestReportPrintsTables(t *testing.T) {
	r := &Report{}
	r.Add("one", Of("ms", 1), Of("rate", 12345.678).AtMost(9))
	r.Add("two", Of("ms", math.NaN()).AtLeast(0), Of("rate", 2))
	r.Note("three", "no")
	r.Add("four", Of("MB", 4))
	require.Equal(t, `       ms                     rate
one    1                      12346 (want at most 9)
two    NaN (want at least 0)  2
three  no
       MB
four   4
`, r.String())
}
