package torch

import "maps"

// Versions returns the versions of Python and its packages, as reported by the engine's process.
func (e *Engine) Versions() map[string]string { return maps.Clone(e.latest().hello.Versions) }
