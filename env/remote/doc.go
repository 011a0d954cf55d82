// Package remote connects environments that run outside this program: Python objects behind the adapter process of
// python/adapter (environment python), and servers of OpenEnv's protocol (environment openenv).
//
// Glossary. A *session* is one live episode on the other side. A *history* is an episode's state here: the task's seed,
// the actions, and a digest of each thing that was shown. A *port* opens sessions; a *keeper* starts the program behind
// a port when sessions are wanted. The *form* of a recipe makes an OpenEnv action from what the policy wrote.
//
// An episode on the other side is not a value that can be copied. So the state is the history, and the live session at
// a history is only a cache of it:
//
//	Step(history, action) ─ live session at that history? ─ yes ─ step it
//	                                                      └ no ── open, reset, repeat the actions, compare ─ step it
//
// A session is missing after the stage moved to another worker, if there are more episodes than sessions, and if one
// state is stepped twice. A session that is lost while it steps (ErrLost) is replaced in the same way. If the repeated
// episode shows something else, Step returns ErrDiffers, and the agent loop excludes the trajectory. Every result is
// committed as a transition, so replays need neither Python nor a server.
//
// Functions calls a user's reward functions in adapter processes of their own.
//
// An adapter process loads the user's code once. Before each request the files that it imported are compared with what
// they hold now; a process whose code was edited is lost, and the next one loads what the files hold then.
//
// The other side is not trusted. Each request has a time limit, and each reply a limit of bytes. What breaks a limit or
// is no finite number is an error, never a score. The adapter process is not sandboxed: it runs the user's own code as
// the worker's user.
package remote
