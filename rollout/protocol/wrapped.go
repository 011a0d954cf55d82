package protocol

import (
	"strings"

	"github.com/ropewalk/ropewalk/rl/reward"
)

// wrapping holds the names of the tags that must enclose a response.
var wrapping = []string{"reason", "tool_call", "answer"}

// Wrapped reports whether all text of a response is inside the protocol's tags and the response ends its turn. The
// <reason> of the generation prompt counts as part of the response.
func Wrapped(response string) bool {
	text, ended := strings.CutSuffix(response, EndOfTurn)
	return ended && reward.Wrapped(reasonOpen+text, wrapping...)
}
