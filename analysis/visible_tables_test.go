package analysis_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// The Python package reads the same tables in the same places: its visible.json is a copy of that of schema/stages.
func TestPythonVisibility(t *testing.T) {
	ours, err := os.ReadFile(filepath.Join("..", "schema", "stages", "visible.json"))
	require.NoError(t, err)
	copied := filepath.Join("..", "python", "ropewalk", "visible.json")
	if *update {
		require.NoError(t, os.WriteFile(copied, ours, 0o644))
	}
	theirs, err := os.ReadFile(copied)
	require.NoError(t, err)
	require.Equal(t, string(ours), string(theirs), "go test ./analysis -run TestPythonVisibility -update")
}

// Every table of rows is read somewhere, and nothing else is.
func TestEveryTableIsVisibleSomewhere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "schema", "stages", "visible.json"))
	require.NoError(t, err)
	var places struct {
		InHeads     map[schema.Table][]string       `json:"in_heads"`
		WithoutHead map[schema.Table]map[string]any `json:"without_head"`
	}
	require.NoError(t, json.Unmarshal(text, &places))
	read := append(schema.Tables(), schema.Batch, schema.ReplayBatch)
	for _, table := range read {
		_, inHeads := places.InHeads[table]
		_, without := places.WithoutHead[table]
		require.True(t, inHeads != without, "table %s: in heads %v, without a head %v", table, inHeads, without)
	}
	stages := []string{
		schema.StagePrompts, schema.StageRollout, schema.StageSandbox, schema.StageAssemble, schema.StageGrade,
		schema.StageJudge, schema.StageFunction, schema.StageReward,
		schema.StageResample, schema.StageLogprobs, schema.StageAdvantage, schema.StageBuffer, schema.StageUpdate,
	}
	for table, made := range places.InHeads {
		require.Contains(t, read, table)
		require.NotEmpty(t, made, table)
		for _, stage := range made {
			require.True(t, slices.Contains(stages, stage), "table %s: stage %s", table, stage)
		}
	}
}
