package torch

import "maps"

// Versions are those of Python and its packages, as the engine's process tells them.
func (e *Engine) Versions() map[string]string { return maps.Clone(e.latest().hello.Versions) }

// PID is the process that was started last, for whoever has to signal it.
func (e *Engine) PID() int { return e.latest().tree.root }
