package protocol

import (
	"strings"

	"github.com/ropewalk/ropewalk/rl/reward"
)

// wrapping are the names of the tags that a response is to stand inside of.
var wrapping = []string{"reason", "tool_call", "answer"}

// Wrapped reports whether a response stands wholly inside the protocol's tags, the <reason> that the
// generation prompt began for it among them, and ends its turn.
func Wrapped(response string) bool {
	text, ended := strings.CutSuffix(response, EndOfTurn)
	return ended && reward.Wrapped(reasonOpen+text, wrapping...)
}
