package servers

// Waiting is how many rows no server has been asked for yet.
func (s *Sampler) Waiting() int {
	s.dispatch.mu.Lock()
	defer s.dispatch.mu.Unlock()
	_, idle := s.dispatch.core.Open()
	return idle
}
