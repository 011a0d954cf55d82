// Package client runs calls in one or several sandbox services. Its main type, Client, is a sandbox.Executor and a
// sandbox.Sessions.
//
//	call ─▶ outstanding call ─▶ least loaded node ─▶ service
//	              ▲                                    │
//	              ├───── send again ◀── breakage ◀─────┤
//	              └───── settle     ◀── verdict  ◀─────┘
//
// The words of the package:
//
//   - A *node* is one service, named by its address. It is *ready* while its stream is open.
//   - An *outstanding call* has no result yet. It is pending, or sent to one node, or, if *hedged*, to two. The first
//     verdict settles it; later ones are dropped.
//   - A call keeps its *key* however often it is sent, so that a node runs it only once.
//
// Calls that end in breakage are sent again, as often as the preset says. Verdicts are final. If a node is lost or
// drains, its calls are sent to other nodes.
package client
