package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/tool"
)

// The bounds of a server's list of tools.
const (
	toolsMax = 1000
	pagesMax = 100
)

// list returns what the server says about those of its tools that the policy can call, in the order of their names.
func (s *session) list(ctx context.Context) ([]Pinned, error) {
	var out []Pinned
	params := &sdk.ListToolsParams{}
	seen := map[string]bool{}
	for page := 0; ; page++ {
		if page == pagesMax {
			return nil, fmt.Errorf("%w: it has more than %d pages", ErrListing, pagesMax)
		}
		if s.meter != nil {
			s.meter.reset()
		}
		got, err := s.client.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, t := range got.Tools {
			if t == nil || seen[t.Name] {
				return nil, fmt.Errorf("%w: it names a tool twice or not at all", ErrListing)
			}
			if seen[t.Name] = true; len(seen) > toolsMax {
				return nil, fmt.Errorf("%w: it has more than %d tools", ErrListing, toolsMax)
			}
			if len(s.server.Tools) > 0 && !slices.Contains(s.server.Tools, t.Name) {
				continue
			}
			p, err := s.server.pin(t)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
		if got.NextCursor == "" {
			break
		}
		params.Cursor = got.NextCursor
	}
	for _, name := range s.server.Tools {
		if !seen[name] {
			return nil, fmt.Errorf("%w: it has no tool %q", ErrListing, name)
		}
	}
	slices.SortFunc(out, func(a, b Pinned) int { return strings.Compare(a.Tool, b.Tool) })
	return out, nil
}

// pin keeps what a server says about a tool.
func (s Server) pin(t *sdk.Tool) (Pinned, error) {
	name := strings.ToValidUTF8(t.Name, "\uFFFD")
	fault := func(format string, args ...any) (Pinned, error) {
		return Pinned{}, fmt.Errorf("%w: tool %.80q: %s", ErrListing, name, fmt.Sprintf(format, args...))
	}
	if called := s.ToolName(name); t.Name == "" || len(called) > nameBytes {
		return fault("its name must have 1 to %d bytes", nameBytes-len(s.Name)-1)
	}
	if len(t.Description) > descriptionMax {
		return fault("its description has %d bytes, and at most %d are allowed", len(t.Description), descriptionMax)
	}
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return fault("its schema is not JSON: %v", err)
	}
	if _, err := newChecker(string(schema)); err != nil {
		return fault("%.300s", err.Error())
	}
	p := Pinned{Tool: name, Description: s.oneLine(t), Schema: string(schema), Repeat: string(s.repeatOf(t))}
	p.Digest = p.digest()
	return p, nil
}

// oneLine returns the description of a tool as one line without a full stop.
func (s Server) oneLine(t *sdk.Tool) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(t.Description, "\uFFFD")), " ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if text = strings.TrimRight(text, "."); text == "" {
		return "tool " + s.ToolName(t.Name)
	}
	return text
}

// repeatOf is how the calls of a tool are repeated.
func (s Server) repeatOf(t *sdk.Tool) tool.Repeat {
	if s.Repeat != ByAnnotations {
		return tool.Repeat(s.Repeat)
	}
	switch a := t.Annotations; {
	case a != nil && a.ReadOnlyHint:
		return tool.Pure
	case a != nil && a.IdempotentHint:
		return tool.Sandboxed
	}
	return tool.AtMostOnce
}

// Discover asks a server for its tools and returns the server with them pinned. An error names the server and what it
// did.
func (p *Pool) Discover(ctx context.Context, server Server) (Server, error) {
	server.Pinned = nil
	s, err := open(ctx, server)
	if err != nil {
		return server, err
	}
	defer s.close()
	limited, cancel := context.WithTimeout(ctx, server.Limit())
	defer cancel()
	pins, err := s.list(limited)
	if err != nil {
		return server, fmt.Errorf("list the tools of MCP server %s: %w", server.Name, s.hide(ctx, limited, err))
	}
	size := 0
	for i := range pins {
		pins[i].Description, pins[i].Schema = s.secrets.Conceal(pins[i].Description), s.secrets.Conceal(pins[i].Schema)
		pins[i].Digest = pins[i].digest()
		size += len(pins[i].Description) + len(pins[i].Schema)
	}
	if len(pins) == 0 {
		return server, fmt.Errorf("list the tools of MCP server %s: %w: it has none", server.Name, ErrListing)
	}
	if size > pinnedBytes {
		return server, fmt.Errorf("list the tools of MCP server %s: %w: descriptions and schemas have %d bytes, and "+
			"at most %d are allowed; name those that the policy needs (tools)", server.Name, ErrListing, size,
			pinnedBytes)
	}
	server.Pinned = pins
	if _, fault := server.faultOfPins(); fault != "" {
		return server, fmt.Errorf("list the tools of MCP server %s: %w: %s", server.Name, ErrListing, fault)
	}
	return server, nil
}
