package resample

import (
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/rl/choice"
)

var unreadable = Filter{
	Choice: choice.Choice{
		Name: "unreadable", Doc: "rows with bytes that are no characters are masked", Source: "SPEAR's released code",
		Settings: Unreadable{},
		Field:    "mask a row whose text holds bytes that are no characters",
	},
	Why: UnreadableResponse,
}

// Mask reports that the text is unreadable.
func (u Unreadable) Mask(r Response) bool { return u.Match(r.Text) }

// Unreadable masks responses whose text has a replacement character (U+FFFD) or bytes that are not UTF-8. The
// reward still counts in the group.
//
// Source: SPEAR's release (not in the paper). Departure: bytes that are not UTF-8 count as the
// replacement characters that a decoder would have put there.
type Unreadable struct{}

// Match reports that the text is unreadable.
func (Unreadable) Match(text string) bool {
	for _, c := range text { // range yields the replacement character for a byte that is not UTF-8
		if c == utf8.RuneError {
			return true
		}
	}
	return false
}
