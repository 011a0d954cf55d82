package toolcall

import (
	"fmt"
	"regexp"
)

// mistral is the form of Mistral's models up to Nemo: a list of objects up to the end of the turn. An id has nine
// letters and digits.
var mistral = Form{
	Name: "mistral", Families: "Mistral 7B v0.3, Mistral Nemo, Mistral Small 3.1",
	Marks: []string{"[TOOL_CALLS]"}, Think: mistralThink, Tokens: []string{"[ARGS]", "[CALL_ID]"},
	grammar: mistralCalls{func(name, arguments string) string {
		return fmt.Sprintf(`[TOOL_CALLS][{"name": %s, "arguments": %s, "id": "call00000"}]`, quote(name), arguments)
	}},
}

var (
	mistralThink   = [2]string{"[THINK]", "[/THINK]"}
	mistralObjects = objects{open: "[TOOL_CALLS]", name: "name", arguments: []string{"arguments"}}
)

// mistralCalls are read in both forms, and written in one.
type mistralCalls struct {
	text func(name, arguments string) string
}

func (m mistralCalls) read(text string, tools []Tool, ended bool) reading {
	if got := mistralObjects.read(text, tools, ended); got.n > 0 || got.open {
		return got
	}
	return mistralHeads.read(text, tools, ended)
}

func (m mistralCalls) write(name, arguments string) string { return m.text(name, arguments) }

// mistralArgs is the form of Mistral's models from Small 3.2 on: each call has a mark, a name and its arguments. Small
// 3.2 writes an id between them, Devstral and Ministral 3 none.
var mistralArgs = Form{
	Name: "mistral_args", Also: []string{"ministral", "devstral"},
	Families: "Mistral Small 3.2, Magistral, Devstral, Ministral 3",
	Marks:    []string{"[TOOL_CALLS]"}, Think: mistralThink, Tokens: []string{"[ARGS]", "[CALL_ID]"},
	grammar: mistralCalls{headed{text: "[TOOL_CALLS]%s[ARGS]%s"}.write},
}

var mistralHeads = headed{begin: "[TOOL_CALLS]", head: regexp.MustCompile(
	`^\[TOOL_CALLS\]\s*(?P<name>[\pL\pN_.:/-]+)(?:\[CALL_ID\](?P<id>[^\[\s]*))?\s*(?:\[ARGS\])?`)}
