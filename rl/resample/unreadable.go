package resample

import "unicode/utf8"

// Unreadable masks responses that decode to junk: text with a replacement character (U+FFFD) or
// bytes that are not UTF-8. The reward still counts in the group.
//
// Source: SPEAR's release (not in the paper). Departure: bytes that are not UTF-8 count as the
// replacement characters that a decoder would have put there.
type Unreadable struct{}

// Validate has nothing to report.
func (Unreadable) Validate() error { return nil }

func (Unreadable) name() string { return "unreadable mask" }

func (Unreadable) draws() bool { return false }

func (Unreadable) apply(s *step) {
	s.maskRows(UnreadableResponse, func(r *Row) bool { return r.Unreadable })
}

// Match reports that the text is unreadable.
func (Unreadable) Match(text string) bool {
	for _, c := range text { // a byte that is not UTF-8 reads as the replacement character, too
		if c == utf8.RuneError {
			return true
		}
	}
	return false
}
