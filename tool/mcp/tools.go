package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/tool"
)

// Tool returns a pinned tool of a server, by the name that the policy calls it by. It connects when a call needs it.
// Tools of one server that share the episode's session (Spec.Server) each run the calls of all of them.
func (p *Pool) Tool(server Server, name string) (tool.Tool, error) {
	t := &serverTool{pool: p, server: server, id: Identity([]Server{server}), pinned: map[string]Pinned{},
		checkers: map[string]*checker{}}
	for _, pin := range server.Pinned {
		c, err := newChecker(pin.Schema)
		if err != nil {
			return nil, fmt.Errorf("tool %s of MCP server %s: %w", pin.Tool, server.Name, err)
		}
		called := server.ToolName(pin.Tool)
		t.pinned[called], t.checkers[called] = pin, c
		if called == name {
			t.spec = server.Spec(pin)
		}
	}
	if t.spec.Name == "" {
		return nil, fmt.Errorf("MCP server %s has no pinned tool %s", server.Name, name)
	}
	return t, nil
}

// serverTool is one tool of a server, or all that share its sessions.
type serverTool struct {
	pool     *Pool
	server   Server
	id       string // of the server in the pool
	spec     tool.Spec
	pinned   map[string]Pinned // by the name that the policy uses
	checkers map[string]*checker
}

// Spec describes the tool.
func (t *serverTool) Spec() tool.Spec { return t.spec }

// End closes the session of an episode.
func (t *serverTool) End(_ context.Context, episode string) error {
	t.pool.end(t.id, episode)
	return nil
}

// Run runs the calls of each episode in order.
func (t *serverTool) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	return tool.EachEpisode(ctx, calls, t.one)
}

func (t *serverTool) one(ctx context.Context, c tool.Call) (tool.Result, error) {
	check, ok := t.checkers[c.Tool]
	if !ok {
		return tool.Result{}, fmt.Errorf("%w: MCP server %s has no pinned tool %s", tool.ErrNotRun, t.server.Name,
			c.Tool)
	}
	if _, fault := check.check(c.Arguments); fault != "" {
		return tool.Result{Status: tool.BadArguments, Stderr: fault}, nil
	}
	for attempt := 0; ; attempt++ {
		result, err := t.attempt(ctx, c)
		// A server that hangs would hang again, and one that floods would flood again.
		again := errors.Is(err, ErrLost) && !errors.Is(err, tool.ErrNotRun) && attempt == 0
		if err == nil || ctx.Err() != nil || !again || t.spec.Repeat == tool.AtMostOnce {
			return result, err
		}
	}
}

func (t *serverTool) attempt(ctx context.Context, c tool.Call) (tool.Result, error) {
	if t.spec.Stateful {
		return t.inEpisode(ctx, c)
	}
	s, err := t.pool.borrow(ctx, t.server, t.id)
	if err != nil {
		return tool.Result{}, err
	}
	result, err := s.call(ctx, t.pinned[c.Tool], c.Key, c.Arguments)
	t.pool.giveBack(t.id, s, err != nil && ctx.Err() == nil)
	return result, err
}

// inEpisode runs a call in the session of its episode, which must have run exactly the earlier calls.
func (t *serverTool) inEpisode(ctx context.Context, c tool.Call) (tool.Result, error) {
	own, err := t.pool.episodes(t.server, t.id)
	if err != nil {
		return tool.Result{}, err
	}
	seat, err := own.Enter(ctx, c.Key.Episode())
	if err != nil {
		return tool.Result{}, err
	}
	defer own.Leave(seat)
	past := t.sent(c.Past)
	if seat.Held != nil && !seat.Held.history.is(past) {
		endSession(&seat.Held)
	}
	if seat.Held == nil {
		if seat.Held, err = t.restore(ctx, past); err != nil {
			return tool.Result{}, err
		}
	}
	result, err := seat.Held.call(ctx, t.pinned[c.Tool], c.Key, c.Arguments)
	if err != nil {
		endSession(&seat.Held)
		return tool.Result{}, err
	}
	seat.Held.history.add(c)
	return result, nil
}

// restore opens a session and repeats the earlier calls in it. Each must have the result that it had.
func (t *serverTool) restore(ctx context.Context, past []tool.Ran) (*session, error) {
	if len(past) > 0 && t.spec.Repeat == tool.AtMostOnce {
		return nil, fmt.Errorf("MCP server %s: %w", t.server.Name, ErrStateLost)
	}
	s, err := openFor(ctx, t.server)
	if err != nil {
		return nil, err
	}
	for i, ran := range past {
		result, err := s.call(ctx, t.pinned[ran.Call.Tool], ran.Call.Key, ran.Call.Arguments)
		if err == nil && result.Untimed() != ran.Result.Untimed() {
			err = fmt.Errorf("MCP server %s: %w: call %d of the episode, of tool %s", t.server.Name, ErrDiffers, i+1,
				t.pinned[ran.Call.Tool].Tool)
		}
		if err != nil {
			s.close()
			return nil, err
		}
		s.history.add(ran.Call)
	}
	return s, nil
}

// sent leaves out the earlier calls that no server has seen, because their arguments were bad.
func (t *serverTool) sent(past []tool.Ran) []tool.Ran {
	var out []tool.Ran
	for _, ran := range past {
		if check := t.checkers[ran.Call.Tool]; check != nil {
			if _, fault := check.check(ran.Call.Arguments); fault == "" {
				out = append(out, ran)
			}
		}
	}
	return out
}

// history holds the digests of the calls that a session has run.
type history []string

func (h *history) add(c tool.Call) { *h = append(*h, digestOf(c)) }

func (h history) is(past []tool.Ran) bool {
	if len(h) != len(past) {
		return false
	}
	for i, ran := range past {
		if h[i] != digestOf(ran.Call) {
			return false
		}
	}
	return true
}

// digestOf identifies what a call asks for. The policy may have written the tool's name in several ways.
func digestOf(c tool.Call) string {
	c.Name = ""
	return c.Digest()
}
