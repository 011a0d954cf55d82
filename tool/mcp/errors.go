package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/tool"
)

// The ways in which a server breaks a call or the start of a session.
var (
	// ErrSetup means that this worker cannot start the server's program or has not the secrets for it.
	ErrSetup = errors.New("the worker cannot reach the MCP server")
	// ErrHung means that the server did not answer in time.
	ErrHung = errors.New("the MCP server did not answer in time")
	// ErrLost means that the session ended: the server died, closed the connection or sent something that is no MCP.
	ErrLost = errors.New("the session with the MCP server is lost")
	// ErrFlood means that the server sent more than a session takes.
	ErrFlood = errors.New("the MCP server sent too much")
	// ErrListing means that what the server says about its tools cannot be used.
	ErrListing = errors.New("the MCP server's list of tools cannot be used")
	// ErrChanged means that the server says something else about a tool than when it was pinned.
	ErrChanged = errors.New("the MCP server describes a tool differently than before")
	// ErrDiffers means that a repeated call had another result than before.
	ErrDiffers = errors.New("a repeated call has another result than before")
	// ErrStateLost means that the session of an episode is lost and its calls cannot be repeated.
	ErrStateLost = errors.New("the episode's session is lost, and its calls must not run twice")
	// ErrNoRoom means that other episodes hold all sessions of a server.
	ErrNoRoom = errors.New("other episodes hold all sessions")
	// ErrAnswer means that the server answered a call with something that is no result.
	ErrAnswer = errors.New("the MCP server's answer is no result")
)

// sentinels are the errors that stay recognisable when an error's text is cleared of secrets.
var sentinels = []error{ErrSetup, ErrHung, ErrLost, ErrFlood, ErrListing, ErrChanged, ErrDiffers, ErrStateLost,
	ErrNoRoom, ErrAnswer, tool.ErrNotRun, tool.ErrUnknownOutcome}

// hide names the kind of an error and removes secrets from its text.
func (s *session) hide(ctx, limited context.Context, err error) error {
	var protocol *jsonrpc.Error
	var refused *refusal.Error
	switch {
	case s.flooded.Load():
		err = ErrFlood
	case errors.As(err, &refused): // holds only names and digests
		return err
	case ctx.Err() == nil && limited.Err() != nil:
		err = ErrHung
	case errors.Is(err, ErrListing), errors.Is(err, ErrSetup):
	case errors.As(err, &protocol) && protocol.Code != rejected:
		err = fmt.Errorf("%w: error %d: %s", ErrAnswer, protocol.Code, protocol.Message)
	default:
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	text := err.Error()
	if s.process != nil && !errors.Is(err, ErrAnswer) && len(s.server.Pinned) == 0 {
		if said := s.process.errors.String(); said != "" {
			text += "; its error output ends with: " + said
		}
	}
	return hidden{err, strings.ToValidUTF8(s.secrets.Conceal(text), "\uFFFD")}
}
