// Package rpc is the streaming protocol of the sandbox service: the messages of sandbox.proto, and their conversion to
// and from the types of package sandbox. sandbox/service/PROTOCOL.md explains the protocol to authors of other clients.
package rpc

// Version is the protocol's version. A server sends its version in its first response; a client refuses any other.
const Version = 1

// Bounds of the protocol.
const (
	MostTasks   = 64       // tasks in one request
	MostMessage = 64 << 20 // bytes of one request: enough for the largest call and more
)
