package mcp

import "time"

// cut ends the connection at once.
func (s *session) cut() {
	if s.end != nil {
		s.end()
	}
	if s.process != nil {
		_ = s.process.Close()
	}
}

// close ends the session and its program. Further calls do nothing.
func (s *session) close() {
	s.closing.Do(func() {
		if s.client != nil {
			ended := make(chan struct{})
			go func() { defer close(ended); _ = s.client.Close() }()
			if s.process == nil { // let the server know, within bounds
				select {
				case <-ended:
				case <-afterGrace():
				}
			}
		}
		s.cut()
		if s.idle != nil {
			s.idle()
		}
	})
}

func afterGrace() <-chan time.Time { return time.After(closeGrace) }
