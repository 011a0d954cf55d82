package toolcall

import (
	"fmt"
	"regexp"
)

// mistral is the form of Mistral 7B v0.3, Mistral Nemo, Mistral Small 3.1: a list of objects up to the end of the
// turn. An id has nine letters and digits.
var mistral = Form{
	Name: "mistral", Families: "Mistral 7B v0.3, Mistral Nemo, Mistral Small 3.1", Marks: []string{"[TOOL_CALLS]"},
	Think: [2]string{"[THINK]", "[/THINK]"}, Tokens: []string{"[ARGS]", "[CALL_ID]"},
	grammar: mistralCalls{func(name, arguments string) string {
		return fmt.Sprintf(`[TOOL_CALLS][{"name": %s, "arguments": %s, "id": "call00000"}]`, Quote(name), arguments)
	}},
}

// mistralArgs is the form of Mistral Small 3.2, Magistral, Devstral, Ministral 3. Each call has a mark, a name and its
// arguments. Small 3.2 writes an id between them, the others none.
var mistralArgs = Form{
	Name: "mistral_args", Also: []string{"ministral", "devstral"}, Marks: []string{"[TOOL_CALLS]"},
	Families: "Mistral Small 3.2, Magistral, Devstral, Ministral 3", Think: [2]string{"[THINK]", "[/THINK]"},
	Tokens: []string{"[ARGS]", "[CALL_ID]"}, grammar: mistralCalls{headed{text: "[TOOL_CALLS]%s[ARGS]%s"}.write},
}

// mistralCalls are read in both forms, and written in one.
type mistralCalls struct {
	text func(name, arguments string) string
}

var (
	mistralObjects = objects{open: "[TOOL_CALLS]", name: "name", arguments: []string{"arguments"}}
	mistralHeads   = headed{begin: "[TOOL_CALLS]", head: regexp.MustCompile(
		`^\[TOOL_CALLS\]\s*(?P<name>[\pL\pN_.:/-]+)(?:\[CALL_ID\](?P<id>[^\[\s]*))?\s*(?:\[ARGS\])?`)}
)

func (m mistralCalls) read(text string, tools []Tool, ended bool) reading {
	if got := mistralObjects.read(text, tools, ended); got.n > 0 || got.open {
		return got
	}
	return mistralHeads.read(text, tools, ended)
}

func (m mistralCalls) write(name, arguments string) string { return m.text(name, arguments) }
