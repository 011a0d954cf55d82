package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompactedRunsAreReadAndReplayed compacts a run by command, and another by its recipe, while it goes on. Both
// equal the run that was not compacted.
func TestCompactedRunsAreReadAndReplayed(t *testing.T) {
	h, want := needs(t, ownNamespace)
	h.ensureUp(t)
	query := "select count(*), sum(length(token_ids)), avg(reward) from turns join rewards using (run, step, " +
		"trajectory_id) where turns.run = '%s'"
	read := func(run string) string {
		return h.run(t, "sql", strings.ReplaceAll(query, "%s", run)).ok(t).out
	}
	before, shown := read("base"), h.run(t, "show", "base", "--step", "2").ok(t).out
	var got compactedRun
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "compact", "base", "--json").ok(t).out), &got))
	require.Equal(t, want.Steps, got.Steps)
	require.GreaterOrEqual(t, got.Shards, 2*got.Tables)
	require.Equal(t, before, read("base"))
	require.Equal(t, shown, h.run(t, "show", "base", "--step", "2").ok(t).out)
	require.Contains(t, h.run(t, "verify", "base").ok(t).out, "no fault")
	require.Contains(t, h.run(t, "compact", "base").ok(t).out, "0 steps compacted")
	require.Contains(t, h.run(t, "replay", "--check", "base").ok(t).out, "0 differ")

	compacting := h.train(t, "compacting", "--set", "record.compact=true")
	require.Equal(t, want.Digest, compacting.Digest, "compaction changes no checkpoint")
	require.Contains(t, h.run(t, "compact", "compacting").ok(t).out, "0 steps compacted",
		"each was compacted during the run")
	require.Contains(t, h.run(t, "verify", "compacting").ok(t).out, "no fault")
	require.Equal(t, strings.ReplaceAll(before, "base", "compacting"), read("compacting"))
}

type compactedRun struct{ Steps, Earlier, Tables, Shards, Rows int }
