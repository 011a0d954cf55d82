package jinja

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPublishedTemplatesEqualTransformers renders conversations of many kinds with each chat template of the packages
// that tools/templates.sh pins, here and with transformers. Both give the same text, or both refuse.
func TestPublishedTemplatesEqualTransformers(t *testing.T) {
	folder := os.Getenv("ROPEWALK_TEMPLATES")
	if folder == "" {
		if os.Getenv("ROPEWALK_REQUIRE_TEMPLATES") != "" {
			t.Fatal("ROPEWALK_TEMPLATES names no folder of chat templates; tools/templates.sh fetches them")
		}
		t.Skip("ROPEWALK_TEMPLATES names no folder of chat templates: make test-templates")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jinja"))
	require.NoError(t, err)
	require.Greater(t, len(files), 200)
	data, err := os.ReadFile("testdata/conversations.json")
	require.NoError(t, err)
	var cases struct {
		Tools        json.RawMessage   `json:"tools"`
		Settings     []map[string]any  `json:"settings"`
		WithoutTools []json.RawMessage `json:"without_tools"`
		WithTools    []json.RawMessage `json:"with_tools"`
	}
	require.NoError(t, json.Unmarshal(data, &cases))
	for batch := range slices.Chunk(files, 40) {
		var jobs []job
		for _, file := range batch {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for i, messages := range slices.Concat(cases.WithoutTools, cases.WithTools) {
				tools := json.RawMessage("null")
				if i >= len(cases.WithoutTools) {
					tools = cases.Tools
				}
				for j, settings := range cases.Settings {
					settings["add_generation_prompt"] = (i+j)%2 == 0
					values, err := json.Marshal(settings)
					require.NoError(t, err)
					jobs = append(jobs, job{string(text), messages, tools, values, filepath.Base(file)})
				}
			}
		}
		compareAll(t, jobs)
	}
}
