package recipes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recipe that names the tools of recipes without the field is the same recipe.
func TestToolsOfARecipe(t *testing.T) {
	plain, err := Resolve("quickstart", "", nil, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"python"}, plain.Recipe.Rollout.ToolNames())
	require.Equal(t, []string{"python"}, Rollout{}.ToolNames())
	named, err := Resolve("quickstart", "", []string{"rollout.tools=[python]"}, nil, nil)
	require.NoError(t, err)
	want, err := plain.Recipe.Canonical()
	require.NoError(t, err)
	got, err := named.Recipe.Canonical()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	require.NotContains(t, string(want), `"tools"`)
	for set, message := range map[string]string{
		"rollout.tools=[python, chess]":  "must be one of python, search, browse",
		"rollout.tools=[python, search]": "must be among python in a recipe of calc, got search",
		"rollout.tools=[python, python]": "must name each tool once, got python twice",
		"rollout.tools=[]":               "must name at least one tool",
	} {
		_, err := Resolve("quickstart", "", []string{set}, nil, nil)
		require.ErrorContains(t, err, message, set)
	}
	// An environment may have tools of its own. A recipe without the field has them.
	for set, want := range map[string][]string{
		"description=x":                  {"search"},
		"rollout.tools=[search, browse]": {"search", "browse"},
		"environment.name=deep_research": {"search", "python"},
	} {
		r, err := Resolve("searchqa", "", []string{set}, nil, nil)
		require.NoError(t, err, set)
		require.Equal(t, want, r.Recipe.Rollout.ToolNames(), set)
		canonical, err := r.Recipe.Canonical()
		require.NoError(t, err)
		require.Equal(t, len(want) == 2 && want[1] == "browse", strings.Contains(string(canonical), `"tools"`), set)
		again, err := ParseCommitted("f", canonical, nil)
		require.NoError(t, err)
		require.Equal(t, want, again.Rollout.ToolNames(), set)
	}
	_, err = Resolve("searchqa", "", []string{"rollout.tools=[python]"}, nil, nil)
	require.ErrorContains(t, err, "must be among search, browse in a recipe of search_qa, got python")
	_, err = Resolve("sokoban", "", []string{"rollout.tools=[python]"}, nil, nil)
	require.ErrorContains(t, err, "rollout.tools")
}
