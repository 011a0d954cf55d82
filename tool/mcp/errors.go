package mcp

import (
	"errors"

	"github.com/ropewalk/ropewalk/tool"
)

// The ways in which a server breaks a call or the start of a session.
var (
	// ErrHung means that the server did not answer in time.
	ErrHung = errors.New("the MCP server did not answer in time")
	// ErrLost means that the session ended: the server died, closed the connection or sent something that is no MCP.
	ErrLost = errors.New("the session with the MCP server is lost")
	// ErrFlood means that the server sent more than a session takes.
	ErrFlood = errors.New("the MCP server sent too much")
	// ErrListing means that what the server says about its tools cannot be used.
	ErrListing = errors.New("the MCP server's list of tools cannot be used")
	// ErrChanged means that the server says something else about a tool than when the tool was pinned.
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
var sentinels = []error{ErrHung, ErrLost, ErrFlood, ErrListing, ErrChanged, ErrDiffers, ErrStateLost, ErrNoRoom,
	ErrAnswer, tool.ErrNotRun, tool.ErrUnknownOutcome}
