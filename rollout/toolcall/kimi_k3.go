package toolcall

import (
	"encoding/json"
	"regexp"
	"strings"
)

// kimiK3 is the form of Kimi K3. Each argument is in an element that says its type.
var kimiK3 = Form{
	Name: "kimi_k3", Families: "Kimi K3",
	Marks:  []string{"<|open|>tools<|sep|>", `<|open|>call tool="`},
	Think:  [2]string{"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
	Around: []string{"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"},
	grammar: kimiK3Calls{elements{open: "<|open|>tools<|sep|>", close: "<|close|>tools<|sep|>",
		call:  [3]string{`<|open|>call tool="`, `"`, "<|close|>call<|sep|>"},
		head:  regexp.MustCompile(`^(?:\s+index="\d*")?\s*<\|sep\|>`),
		arg:   [3]string{`<|open|>argument key="`, `"`, "<|close|>argument<|sep|>"},
		value: regexp.MustCompile(`^(?:\s+type="(\w*)")?\s*<\|sep\|>`), json: true}},
}

// kimiK3Calls are numbered, and say each argument's type.
type kimiK3Calls struct{ elements }

func (e kimiK3Calls) write(name, arguments string) string {
	var b strings.Builder
	b.WriteString(e.open + e.call[0] + name + `" index="1"<|sep|>`)
	for _, f := range fieldsOf(arguments) {
		var v any
		_ = json.Unmarshal([]byte(f.value), &v) // fieldsOf has read it
		value, _ := unquoted(f.value)
		b.WriteString(e.arg[0] + f.name + `" type="` + kindOf(v) + `"<|sep|>` + value + e.arg[2])
	}
	return b.String() + e.call[2] + e.close
}
