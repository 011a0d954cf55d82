package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/secret"
	"github.com/ropewalk/ropewalk/tool"
)

// The bounds of what a session reads.
const (
	// messageMax is the least that one message may have, in bytes: a list of tools must fit.
	messageMax = 2 << 20
	// escaped is how many times longer than its text a message with a result can be: each character may be written as
	// \u0000, and servers send structured results twice.
	escaped = 16
	// windowMessages is how many messages of the largest size a session may send around one call.
	windowMessages = 2
)

// rejected is the code of an error that the SDK's transport makes: the request could not be sent.
const rejected = -32005

// session is one connection to a server. Its calls may overlap.
type session struct {
	server  Server
	client  *sdk.ClientSession
	process *process // nil with an address
	meter   *meter   // nil with an address, where each answer has a bound of its own
	end     context.CancelFunc
	idle    func() // closes idle connections
	secrets *secret.Values
	changed atomic.Bool // the server says that its tools have changed
	flooded atomic.Bool
	closing sync.Once

	history history // of the episode's session; belongs to the holder of its turn
	users   int     // of a shared session; guarded by the pool's lock
}

// largest is the largest message that a session reads, in bytes.
func (s Server) largest() int { return max(messageMax, s.OutputKB<<10*escaped) }

// openFor is open for a call: an error says that the call was not run.
func openFor(ctx context.Context, server Server) (*session, error) {
	s, err := open(ctx, server)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", tool.ErrNotRun, err)
	}
	return s, err
}

// open opens a session and checks that the server describes the pinned tools as they are pinned.
func open(ctx context.Context, server Server) (*session, error) {
	s := &session{server: server, secrets: &secret.Values{}}
	limited, cancel := context.WithTimeout(ctx, server.Limit())
	defer cancel()
	err := s.connect(limited)
	if err == nil {
		err = s.verify(limited)
	}
	if err != nil {
		err = s.hide(ctx, limited, err)
		s.close()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("open a session with MCP server %s: %w", server.Name, err)
	}
	return s, nil
}

func (s *session) connect(ctx context.Context) error {
	transport, err := s.transport()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSetup, err)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "ropewalk", Version: "1"}, &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), Capabilities: &sdk.ClientCapabilities{},
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { s.changed.Store(true) },
	})
	connected := make(chan error, 1)
	go func() { // a server that does not read may hold a write up
		connected <- rescue.Do(func() (err error) {
			s.client, err = client.Connect(ctx, transport, nil)
			return err
		})
	}()
	select {
	case err := <-connected:
		return err
	case <-ctx.Done():
		s.cut()
		<-connected
		return context.Cause(ctx)
	}
}

// transport starts the program, or prepares requests to the address.
func (s *session) transport() (sdk.Transport, error) {
	flooded := func() { s.flooded.Store(true) }
	if s.server.URL == "" {
		command := make([]string, len(s.server.Command))
		for i, word := range s.server.Command {
			var err error
			if command[i], err = s.secrets.Resolve("command", word); err != nil {
				return nil, err
			}
		}
		env, err := s.secrets.Variables(s.server.Env)
		if err != nil {
			return nil, err
		}
		if s.process, err = startProcess(command, env); err != nil {
			return nil, err
		}
		s.meter = &meter{ReadCloser: s.process.out, most: int64(windowMessages * s.server.largest()), excess: flooded}
		// the meter bounds a message too: the transport's own bound cannot be told from a lost connection
		return &sdk.IOTransport{Reader: s.meter, Writer: s.process.in, MaxLineLength: -1}, nil
	}
	address, err := s.secrets.Resolve("url", s.server.URL)
	if err != nil {
		return nil, err
	}
	headers, err := s.secrets.Headers(s.server.Headers)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	s.end = end
	base := http.DefaultTransport.(*http.Transport).Clone()
	s.idle = base.CloseIdleConnections
	w := &web{next: base, headers: headers, most: int64(s.server.largest()), life: life, excess: flooded}
	return &sdk.StreamableClientTransport{Endpoint: address, HTTPClient: w.client(), MaxRetries: -1,
		DisableStandaloneSSE: true, MaxEventSize: s.server.largest()}, nil
}

// verify compares the server's tools with the pinned ones.
func (s *session) verify(ctx context.Context) error {
	if len(s.server.Pinned) == 0 {
		return nil
	}
	s.changed.Store(false)
	now, err := s.list(ctx)
	if err != nil {
		return err
	}
	byName := map[string]Pinned{}
	for _, p := range now {
		byName[p.Tool] = p
	}
	for _, p := range s.server.Pinned {
		p.Repeat, p.Digest = "", ""
		p.Digest = p.digest()
		is, ok := byName[p.Tool]
		if !ok {
			return changed("MCP server %s: it has no tool %s any more, and the run was prepared with it",
				s.server.Name, p.Tool)
		}
		is.Repeat, is.Digest = "", ""
		if is.digest() != p.Digest {
			return changed("MCP server %s: tool %s: its description and schema have the digest %s now, and %s when "+
				"the run was prepared", s.server.Name, p.Tool, is.digest(), p.Digest)
		}
	}
	return nil
}

// changed returns a refusal: another attempt finds the same server.
func changed(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrChanged, refusal.Unusablef(format, args...))
}

// call runs one call within the server's limit.
func (s *session) call(ctx context.Context, p Pinned, key tool.Key, arguments json.RawMessage) (tool.Result, error) {
	limited, cancel := context.WithTimeout(ctx, s.server.Limit())
	defer cancel()
	if s.meter != nil {
		s.meter.reset()
	}
	params := &sdk.CallToolParams{Name: p.Tool, Arguments: arguments}
	if p.Repeat == string(tool.Keyed) {
		params.Meta = sdk.Meta{"ropewalk/key": key.String()}
	}
	type answer struct {
		result *sdk.CallToolResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() { // see connect
		var a answer
		a.err = rescue.Do(func() (err error) {
			if s.changed.Load() {
				err = s.verify(limited)
			}
			if err == nil {
				a.result, err = s.client.CallTool(limited, params)
			}
			return err
		})
		answered <- a
	}()
	var a answer
	select {
	case a = <-answered:
	case <-limited.Done():
		a.err = context.Cause(limited)
	}
	var protocol *jsonrpc.Error
	switch {
	case a.err == nil:
		return s.result(a.result)
	case errors.As(a.err, &protocol) && protocol.Code == jsonrpc.CodeInvalidParams:
		return s.failed(protocol.Message), nil
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	}
	return tool.Result{}, fmt.Errorf("call tool %s of MCP server %s: %w", p.Tool, s.server.Name,
		s.hide(ctx, limited, a.err))
}
