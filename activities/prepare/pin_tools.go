package prepare

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// PinTools asks the recipe's MCP servers for their tools and returns the recipe with them. From then on the recipe
// alone says what prompts and calls look like, so later stages and replays need no server for that. A run that is
// already prepared, by the manifest ref, keeps its tools.
func (a PrepareRun) PinTools(ctx context.Context, resolved *recipes.Resolved, ref schema.Ref,
	found bool) (*recipes.Resolved, error) {
	if len(resolved.Recipe.Rollout.MCP) == 0 {
		return resolved, nil
	}
	var earlier []mcp.Server
	if found {
		c, err := a.Recipes.Config(ctx, ref)
		if err != nil {
			return nil, err
		}
		earlier = c.Recipe.Rollout.MCP
	}
	servers := mcp.Adopt(resolved.Recipe.Rollout.MCP, earlier)
	for i, s := range servers {
		if len(s.Pinned) > 0 {
			continue
		}
		var err error
		if servers[i], err = a.Execution.Servers.Discover(ctx, s); err != nil && ctx.Err() == nil {
			return nil, badinput.Errorf("rollout.mcp: %v", err) // a person is there to correct it
		}
		if err != nil {
			return nil, err
		}
	}
	return resolved.Recipe.WithServers(servers)
}

// withPins returns a changed recipe with the tools that were pinned before: a run's tools stay the same.
func withPins(resolved *recipes.Resolved, before []mcp.Server) (*recipes.Resolved, error) {
	servers := resolved.Recipe.Rollout.MCP
	if len(servers) == 0 && len(before) == 0 {
		return resolved, nil
	}
	servers = mcp.Adopt(servers, before)
	for i, s := range servers {
		if len(servers) != len(before) || s.Name != before[i].Name || !samePins(s.Pinned, before[i].Pinned) {
			return nil, badinput.Errorf("rollout.mcp: the servers and tools of a run stay those that " +
				"it was prepared with")
		}
	}
	if len(servers) != len(before) {
		return nil, badinput.Errorf("rollout.mcp: the servers of a run stay those that it was prepared with")
	}
	return resolved.Recipe.WithServers(servers)
}

func samePins(a, b []mcp.Pinned) bool {
	return mcp.Identity([]mcp.Server{{Pinned: a}}) == mcp.Identity([]mcp.Server{{Pinned: b}})
}
