package spelling_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/spelling"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"run", "", 3}, {"run", "run", 0}, {"rum", "run", 1}, {"rus", "runs", 1},
		{"inspetc", "inspect", 1},
		{"kitten", "sitting", 3},
		{"schön", "schon", 1},
	} {
		require.Equal(t, c.want, spelling.Distance(c.a, c.b), "%s, %s", c.a, c.b)
		require.Equal(t, c.want, spelling.Distance(c.b, c.a), "%s, %s", c.b, c.a)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"run", "runs", "up", "gc", "inspect", "Quickstart"}
	for word, want := range map[string]string{
		"rus": "run", "insepct": "inspect", "INSPECT": "inspect", "quikstart": "Quickstart",
		"ls": "", "x": "", "": "", "status": "", strings.Repeat("inspect", 10): "",
	} {
		require.Equal(t, want, spelling.Nearest(word, names), word)
	}
	require.Equal(t, []string{"run", "runs"}, spelling.AllNearest("rus", names), "both are one edit away")
	require.Equal(t, []string{"inspect"}, spelling.AllNearest("inspects", names))
	require.Empty(t, spelling.AllNearest("status", names))
}

func TestOrList(t *testing.T) {
	require.Equal(t, "", spelling.OrList(nil))
	require.Equal(t, "run", spelling.OrList([]string{"run"}))
	require.Equal(t, "run or runs", spelling.OrList([]string{"run", "runs"}))
	require.Equal(t, "run, runs or up", spelling.OrList([]string{"run", "runs", "up"}))
}
