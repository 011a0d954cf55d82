package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/tool/mcp"
)

const mcpServer = "rollout.mcp=[{name: a, command: [serve], repeat: sandboxed}]"

// A recipe's MCP servers survive its canonical form, and recipes without them keep theirs.
func TestMCPServersOfARecipe(t *testing.T) {
	set := []string{"rollout.protocol=hermes"}
	plain, err := Resolve("quickstart", "", set, nil, nil)
	require.NoError(t, err)
	require.NotContains(t, string(plain.JSON), "mcp")
	with, err := Resolve("quickstart", "", append(set, mcpServer), nil, nil)
	require.NoError(t, err)
	again, err := ParseCommitted("f", with.JSON, nil)
	require.NoError(t, err)
	require.Equal(t, with.Recipe.Rollout.MCP, again.Rollout.MCP)
	require.Equal(t, mcp.Server{Name: "a", Command: []string{"serve"}, Env: []string{}, Headers: []string{},
		Tools: []string{}, Repeat: "sandboxed", Session: "episode", Sessions: 256, Seconds: 60, OutputKB: 64},
		again.Rollout.MCP[0])
	_, err = again.Rollout.Declared()
	require.ErrorContains(t, err, "rollout.mcp: the tools of MCP server a are not pinned")
}

func TestMCPServersThatARecipeCannotHave(t *testing.T) {
	for set, message := range map[string]string{
		"rollout.protocol=rstar2": "cannot be called with rollout.protocol rstar2",
		"rollout.mcp=[{name: a, command: [x], repeat: pure}, {name: a, command: [y], repeat: pure}]": "must name " +
			"each server once, got a twice",
		"rollout.mcp=[{name: A, command: [x]}]":                    "must match ^[a-z][a-z0-9_]{0,31}$",
		"rollout.mcp=[{name: a}]":                                  "command: a server has either command or url",
		"rollout.mcp=[{name: a, command: [x], env: ['K=${x:y}']}]": "server a: env: a reference to a secret is",
		"rollout.mcp=[{name: a, command: [x], sessions: 100}]":     "sessions must be ≥ 512, for so many",
		"rollout.mcp=[{name: a, command: [x], session: alone}]":    "must be one of episode, shared",
		"rollout.mcp=[{name: a, command: [x], seconds: 0}]":        "must be > 0",
		"rollout.mcp=[{name: a, command: [x], secret: 1}]":         "no such field",
		"rollout.tools=[]": "must name the tools that",
		"rollout.mcp=[{name: a, command: [x], pinned: [{tool: t}]}]": "is required",
		"rollout.mcp=[{name: a, command: [x], repeat: pure, pinned: [{tool: t, schema: '{}', repeat: pure, " +
			"digest: d}]}]": "tool t: the digest is not that of the other fields",
	} {
		_, err := Resolve("quickstart", "", []string{"rollout.protocol=hermes", mcpServer, set}, nil, nil)
		require.ErrorContains(t, err, message, set)
	}
	_, err := Resolve("sokoban", "", []string{mcpServer}, nil, nil)
	require.ErrorContains(t, err, "rollout.mcp")
}
