package sandbox_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

var update = flag.Bool("update", false, "rewrite the lists of threats in docs/sandbox.md")

const threatPage = "../docs/sandbox.md"

// The end of the page lists for each tier what the rows claim.
func TestThreatsAreDocumented(t *testing.T) {
	const begin = "<!-- Made from threats_test.go by: go test ./sandbox -run TestThreatsAreDocumented -update -->\n"
	text, err := os.ReadFile(threatPage)
	require.NoError(t, err)
	prose, _, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no mark %q", threatPage, begin)
	want := prose + begin + threatLists()
	if *update {
		require.NoError(t, os.WriteFile(threatPage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text),
		"docs/sandbox.md is stale; run go test ./sandbox -run TestThreatsAreDocumented -update")
}

// threatLists lists the threats by the weakest tier that stops them.
func threatLists() string {
	heads := map[sandbox.Tier]string{
		sandbox.TierRlimits: "Stopped in every tier", sandbox.TierLandlock: "Open in `rlimits`, stopped in the others",
		sandbox.TierFull: "Stopped in `full` alone",
	}
	var b strings.Builder
	for _, tier := range slices.Backward(sandbox.Tiers()) {
		b.WriteString("\n")
		line := "**" + heads[tier] + ":**"
		for _, row := range threats() {
			if row.holds != tier {
				continue
			}
			for word := range strings.FieldsSeq(row.name + ";") {
				if len(line)+1+len(word) > 120 {
					fmt.Fprintln(&b, line)
					line = word
				} else {
					line += " " + word
				}
			}
		}
		fmt.Fprintln(&b, strings.TrimSuffix(line, ";")+".")
	}
	return b.String()
}

func TestThreatNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range threats() {
		require.False(t, seen[row.name], row.name)
		require.NotEmpty(t, row.code, row.name)
		_, err := sandbox.ParseTier(string(row.holds))
		require.NoError(t, err, row.name)
		seen[row.name] = true
	}
}
