package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool/mcp"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// Declared returns the tools that the policy can call: those that the recipe names, then those of its MCP servers,
// which must be pinned.
func (r Rollout) Declared() ([]tools.Declaration, error) {
	own, err := tools.Select(r.ToolNames()...)
	if err != nil {
		return nil, err
	}
	of, err := tools.OfServers(r.MCP)
	if err != nil {
		return nil, fmt.Errorf("rollout.mcp: %w", err)
	}
	return append(own, of...), nil
}

// WithServers returns the recipe with other MCP servers: those of the recipe with their tools pinned.
func (r *Recipe) WithServers(servers []mcp.Server) (*Resolved, error) {
	with := *r
	with.Rollout.MCP = servers
	if text := serversFit(&with); text != "" {
		return nil, Problems{{File: "recipe " + r.Name, Path: "rollout.mcp", Message: text}}
	}
	return with.resolved()
}

// serversFit checks the recipe's MCP servers, and the names of their pinned tools.
func serversFit(r *Recipe) string {
	servers := r.Rollout.MCP
	if len(servers) == 0 {
		return ""
	}
	p, err := r.Protocol()
	if err != nil {
		return ""
	}
	if !offers(p) {
		return fmt.Sprintf("cannot be called with rollout.protocol %s, whose prompts do not list tools, or which does "+
			"not write any call as JSON; hermes does", p.Spec().Name)
	}
	names := slices.Clone(r.Rollout.ToolNames())
	for i, s := range servers {
		if slices.ContainsFunc(servers[:i], func(o mcp.Server) bool { return o.Name == s.Name }) {
			return fmt.Sprintf("must name each server once, got %s twice", s.Name)
		}
		if field, text := s.Fault(); text != "" {
			return fmt.Sprintf("server %s: %s: %s", s.Name, field, text)
		}
		if text := r.Rollout.roomFor(s); text != "" {
			return text
		}
		for _, t := range s.Specs() {
			if slices.Contains(names, t.Name) {
				return fmt.Sprintf("must name each tool once, got %s twice", t.Name)
			}
			names = append(names, t.Name)
		}
	}
	return ""
}

// offers reports whether a protocol tells the policy of a tool that it does not know, can express its calls, and guards
// itself against its text.
func offers(p protocol.Protocol) bool {
	const name = "server_tool"
	if _, ok := p.Write(env.Move{Tool: name, Arguments: "{}"}); !ok || !p.Spec().Tools || len(p.Spec().Marks) == 0 {
		return false
	}
	return strings.Contains(p.Context(protocol.View{Tools: []protocol.Tool{{Name: name}}}), name)
}

// roomFor checks that a worker can hold the sessions of all episodes, if a session that is closed early is lost.
func (o Rollout) roomFor(s mcp.Server) string {
	if s.Session == mcp.SharedSession || s.Restores() || len(s.Pinned) == 0 && s.Repeat == mcp.ByAnnotations {
		return ""
	}
	need := max(o.Prompts*o.SamplesPerPrompt, rollout.StatefulEpisodes)
	return unless(s.Sessions >= need, "server %s: sessions must be ≥ %d, for so many episodes hold one at once, and "+
		"nothing says that calls can be repeated (repeat), got %d", s.Name, need, s.Sessions)
}
