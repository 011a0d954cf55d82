package torch

import "maps"

// Versions are those of Python and its packages, as the engine's process tells them.
func (e *Engine) Versions() map[string]string { return maps.Clone(e.latest().hello.Versions) }
