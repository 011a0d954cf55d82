// Package mcp makes the tools of a Model Context Protocol server tools of an episode.
//
// Glossary. A *server* is a program of the user's, or an address, that offers tools (Server). To *pin* a tool is to
// keep what the server says about it: name, description, JSON schema (Pinned, Discover). Prompts, parsers and replays
// use the pinned tools alone, so they need no server. A *session* is one connection to a server; an episode has its own
// or shares one. A *reference* is the place of a secret, ${env:NAME} or ${file:PATH}, which is resolved where the
// server is reached and nowhere else.
//
//	recipe ─▶ Pool.Discover ─▶ pinned tools, in the record
//	calls  ─▶ Pool.Tools: check the arguments ─▶ session of the episode ─▶ server
//	                                                  │ lost: open another, repeat the earlier calls, compare
//
// A session holds state, so its calls run in order. A session that is lost is made again by repeating the episode's
// calls, if they can be repeated; the call breaks if one of them has another result than before. A server that hangs,
// dies, sends too much or states another schema breaks calls. No such thing becomes a verdict.
package mcp
