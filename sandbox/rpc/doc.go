// Package rpc is the streaming protocol of the sandbox service: its messages, as sandbox.proto has
// them, and what they mean in package sandbox's terms. sandbox/service/PROTOCOL.md is for whoever
// speaks it from elsewhere.
package rpc

// Version is the protocol's. A server says its own in its first response; a client refuses another.
const Version = 1

// Bounds of the protocol.
const (
	MostTasks   = 64       // in one request
	MostMessage = 64 << 20 // bytes of one request: the largest call, and room beside it
)
