package mcp

import "errors"

// hidden is an error whose text holds no secret.
type hidden struct {
	error
	text string
}

// Error returns the text without secrets.
func (h hidden) Error() string { return h.text }

// Unwrap returns the error's chain. Its text is not for people.
func (h hidden) Unwrap() []error {
	var kept []error
	for _, sentinel := range sentinels {
		if errors.Is(h.error, sentinel) {
			kept = append(kept, sentinel)
		}
	}
	return kept
}
