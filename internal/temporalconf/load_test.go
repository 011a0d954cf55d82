package temporalconf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ropewalk "github.com/ropewalk/ropewalk"
	"github.com/stretchr/testify/require"
)

func TestBuiltInConfiguration(t *testing.T) {
	c, err := Default()
	require.NoError(t, err)
	require.Equal(t, "ropewalk", c.Namespace)
	require.Equal(t, 30*24*time.Hour, c.Retention)
	want := []string{"FailureKind=Keyword", "RunID=Keyword", "RunStarted=Datetime", "RunState=Keyword",
		"Stage=Keyword", "Step=Int", "Success=Double"}
	require.Empty(t, cmp.Diff(want, c.SearchAttributeFlags()))
	require.Contains(t, c.DynamicConfigFlags(), "matching.numTaskqueueReadPartitions=1")
	var names []string
	for _, q := range c.Queues.All() {
		names = append(names, q.Name)
	}
	require.Equal(t, []string{"cpu", "rollout", "sandbox", "gpu"}, names)
}

// The supervisor receives the configuration as JSON.
func TestJSONRoundTrip(t *testing.T) {
	c, err := Default()
	require.NoError(t, err)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	var back Config
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, c.DynamicConfigFlags(), back.DynamicConfigFlags())
	c.DynamicConfig, back.DynamicConfig = nil, nil
	require.Empty(t, cmp.Diff(c, back))
}

func TestFaultsNameLineAndPath(t *testing.T) {
	builtin := string(ropewalk.TemporalYAML)
	line := func(text, sub string) int { return strings.Count(text[:strings.Index(text, sub)], "\n") + 1 }
	for _, tc := range []struct{ name, old, new, want string }{
		{"unknown field", "retention: 720h", "retentoin: 720h", "field retentoin not found"},
		{"wrong type", "sticky_cache_size: 600", "sticky_cache_size: many", "must be a whole number, got many"},
		{"short retention", "retention: 720h", "retention: 1h", "retention: must be ≥ 24h, got 1h0m0s"},
		{"attribute type", "  RunID: Keyword", "  RunID: Word", `search_attributes.RunID: unknown type "Word"`},
		{"attribute of runs", "  RunState: Keyword", "  RunState: Int",
			`search_attributes.RunState: must be Keyword, got "Int"`},
		{"attribute kind", "  Step: Int", "  Step: Keyword", `search_attributes.Step: must be Int, got "Keyword"`},
		{"namespace", "namespace: ropewalk", "namespace: rope/walk", "namespace: must be 1 to 255"},
		{"no workflow pollers", "workflow_pollers: 2", "workflow_pollers: 0",
			"queues.cpu.workflow_pollers: must be ≥ 2"},
		{"no activities", "max_concurrent_activities: 4", "max_concurrent_activities: 0",
			"queues.cpu.max_concurrent_activities: must be ≥ 1, got 0"},
		{"setting's name", "  matching.numTaskqueueReadPartitions: 1", "  'numTask queue': 1", "must be a dotted name"},
		{"setting's value", "  matching.numTaskqueueReadPartitions: 1", "  matching.numTaskqueueReadPartitions: [1]",
			"dynamic_config.matching.numTaskqueueReadPartitions: must be a string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Contains(t, builtin, tc.old)
			text := strings.Replace(builtin, tc.old, tc.new, 1)
			_, err := parse("t.yaml", []byte(text))
			require.ErrorIs(t, err, errInvalid)
			require.ErrorContains(t, err, tc.want)
			key := strings.TrimSpace(strings.SplitAfter(tc.new, ":")[0])
			require.ErrorContains(t, err, "t.yaml:"+itoa(line(text, key))+":")
			require.NotContains(t, err.Error(), "temporalconf.", "Go type names are no help to users")
		})
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestLoadTakesFileElseBuiltIn(t *testing.T) {
	t.Chdir(t.TempDir())
	c, err := Load("")
	require.NoError(t, err)
	require.Equal(t, "ropewalk", c.Namespace)
	text := strings.Replace(string(ropewalk.TemporalYAML), "namespace: ropewalk", "namespace: mine", 1)
	require.NoError(t, os.WriteFile(fileName, []byte(text), 0o644))
	c, err = Load("")
	require.NoError(t, err)
	require.Equal(t, "mine", c.Namespace)
	_, err = Load(filepath.Join("absent", fileName))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = parse("empty.yaml", nil)
	require.ErrorContains(t, err, "the file is empty")
}
