// Package client runs calls in sandbox services, one or several. Its words:
//
//   - A *node* is one service by its address. It is *ready* while its stream lives and it takes calls.
//   - A *flight* is one call on its way: it is pending, or in flight on a node, or, *hedged*, on two.
//     The first verdict lands it, and only that one is handed out.
//   - A call's *key* stays the same however often it is sent, so that a node runs it once.
//
// What comes back as breakage is sent again, as often as the preset says; a verdict never is. A node
// that is lost or drains has its calls sent elsewhere.
package client
