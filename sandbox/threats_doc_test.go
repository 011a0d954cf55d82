package sandbox_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

var update = flag.Bool("update", false, "rewrite the table of threats in docs/sandbox.md")

const threatPage = "../docs/sandbox.md"

// The last section of the page lists for each tier what the rows claim.
func TestThreatsAreDocumented(t *testing.T) {
	const headline = "| threat | full | landlock | rlimits |\n"
	text, err := os.ReadFile(threatPage)
	require.NoError(t, err)
	prose, _, _ := strings.Cut(string(text), headline)
	want := strings.TrimRight(prose, "\n") + "\n\n" + headline + threatTable()
	if *update {
		require.NoError(t, os.WriteFile(threatPage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text),
		"docs/sandbox.md is stale; run go test ./sandbox -run TestThreatsAreDocumented -update")
}

func threatTable() string {
	var b strings.Builder
	b.WriteString("| --- | --- | --- | --- |\n")
	for _, row := range threats() {
		fmt.Fprintf(&b, "| %s", row.name)
		for _, tier := range sandbox.Tiers() {
			word := "open"
			if tier.AtLeast(row.holds) {
				word = "stopped"
			}
			fmt.Fprintf(&b, " | %s", word)
		}
		b.WriteString(" |\n")
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
