package scheduler

// draining reports whether an engine is to load other weights, or loads them.
func (at *engine) draining(c *Core) bool { return at.loading || at.Version != c.target }

// continues reports whether an engine continues an episode that it has begun, or could begin one: while it drains
// whole episodes, it continues the episodes of its version.
func (c *Core) continues(at *engine, e *episode) bool {
	switch {
	case !at.up || at.loading:
		return false
	case at.Version == c.target:
		return true
	}
	return e.started() && e.version == at.Version
}

// started reports whether an episode has been started under some weights.
func (e *episode) started() bool { return e.attempt > 0 }

// hasWeightsOf reports whether an engine has the weights that an episode began with, as long as any engine has them.
func (c *Core) hasWeightsOf(at *engine, e *episode) bool {
	if !e.started() || e.version == at.Version {
		return true
	}
	for i := range c.engines {
		other := &c.engines[i]
		if other.up && !other.loading && other.Version == e.version && other.holds(c.size(e), e.Most) {
			return false
		}
	}
	return true
}

// load asks the engines that are empty for the new weights, until all have been asked.
func (c *Core) load() {
	if c.loaded {
		return
	}
	c.loaded = true
	for i := range c.engines {
		at := &c.engines[i]
		if !at.up || at.loading || at.Version == c.target {
			continue
		}
		if at.generating > 0 || len(at.home) > 0 {
			c.loaded = false
			continue
		}
		at.loading = true
		c.emit(Action{Do: Load, Engine: i, Version: c.target})
	}
}
