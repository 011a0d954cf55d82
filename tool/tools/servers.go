package tools

import (
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// errNoServers means that a worker reaches no MCP servers.
var errNoServers = errors.New("this worker reaches no MCP servers")

// OfServers declares the tools of MCP servers, which must be pinned.
func OfServers(servers []mcp.Server) ([]Declaration, error) {
	var out []Declaration
	for _, s := range servers {
		if len(s.Pinned) == 0 {
			return nil, fmt.Errorf("the tools of MCP server %s are not pinned: only a run that was prepared has them",
				s.Name)
		}
		for _, spec := range s.Specs() {
			out = append(out, Declaration{Spec: spec, Open: func(h Host) (tool.Tool, error) {
				if h.Servers == nil {
					return nil, errNoServers
				}
				return h.Servers.Tool(s, spec.Name)
			}})
		}
	}
	return out, nil
}
