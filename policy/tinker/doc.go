// Package tinker trains and samples at an address that speaks the Tinker API: the server holds the base model and a
// LoRA adapter, and computes forward and backward passes, optimiser steps and samples. An Engine implements
// policy.Engine.
//
// Glossary. A *session* is this process at the server; it is kept alive by heartbeats. A *model* is an adapter that a
// session has made; each role has one. A *future* is the number of a request whose result is asked for afterwards. The
// *convention* is what a server divides gradients by; it is found out before anything trains (Convention). A *datum* is
// a sequence with its targets and a number for each of them. A checkpoint at the server has a *path*, tinker://….
//
//	losses in rl/ ─d(loss)/d(logp) of each token→ Backward (kept here) ─Step→ forward_backward …, optim_step
//	Save: save_weights, save_weights_for_sampler → paths, and the adapter is downloaded → checkpoint folder
//	Load: checkpoint folder → create_model, load_weights → probe → the same log-probabilities as when it was saved
//
// A checkpoint folder of this engine holds the base, the adapter as PyTorch's engine writes it, and tinker.json: the
// paths at the server, the steps taken, and the log-probabilities of a few tokens (the *probe*). Weights can be loaded
// from a path alone, because the API takes none. So another engine goes on from the folder if a server has lost its
// paths, and this one does not.
//
// Backward sends nothing. Step sends all passes of a step, because some servers divide by their number. Requests that
// change nothing are repeated after an error that may pass. A forward_backward or an optim_step whose fate is unknown
// is not: the model is then lost (policy.ErrLost), and the caller loads its checkpoint again.
package tinker
