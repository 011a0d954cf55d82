// Package servers samples with inference servers over HTTP: our own (ropewalk serve), llama.cpp's llama-server, vLLM,
// SGLang, TensorRT-LLM, and others that speak OpenAI's completions or chat completions.
//
// Glossary. A *server* is an address, the *kind* of program there, and bounds on what it is asked for at once. A
// *dialect* speaks to one kind: it establishes *facts* about the server, asks for a *row* (one response to one prefix),
// *scores* given tokens, and *publishes* weights. A server is *in use* while it has the published version and answers,
// and *drained* otherwise; a drained server gets no requests until the next Load has put it back into use. The *probe*
// is a fixed sequence of tokens. After every Load each server scores it, and the log-probabilities are compared with
// those of our own forward pass over the same folder, because servers answer "done" and keep old values.
//
//	Load: folder ─stage→ what the server reads ─publish→ server ─score the probe→ compare → in use, or drained
//	Generate: rows ─dispatch→ scheduler ─a server→ row ─→ reply ─check→ response
//	                              ↑──── what has happened ←────┘
//
// Package policy/scheduler decides which server is asked for which row, and when: by the room in each server's KV
// cache, as far as it is known; where the beginning of a prefix is cached; how fast servers have been; and whose rows
// they are. A row that runs on a server which is lost, fails, or is much slower than the others is asked of another
// one. What the scheduler is told about a server is in dispatch.go, and what follows from each kind of error in
// health.go.
//
// Every request is for one row. So a server that is lost loses the rows that it has not finished, and they go to
// another one with the same seed; of long rows, which are streamed, not even the tokens that have come are lost
// (begun.go). Replies are bounded in bytes and time and are checked token by token before anything is believed.
package servers
