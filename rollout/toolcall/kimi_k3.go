package toolcall

import (
	"encoding/json"
	"regexp"
	"strings"
)

// kimiK3 is the form of Kimi K3. Each argument is in an element that says its type.
var kimiK3 = Form{
	Name: "kimi_k3", Families: "Kimi K3",
	Marks:  []string{kimiK3Elements.open, kimiK3Elements.call[0]},
	Think:  [2]string{"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
	Around: []string{"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"},
	read:   kimiK3Elements.read, write: writeKimiK3,
}

var kimiK3Elements = elements{open: "<|open|>tools<|sep|>", close: "<|close|>tools<|sep|>",
	call:  [3]string{`<|open|>call tool="`, `"`, "<|close|>call<|sep|>"},
	head:  regexp.MustCompile(`^(?:\s+index="\d*")?\s*<\|sep\|>`),
	arg:   [3]string{`<|open|>argument key="`, `"`, "<|close|>argument<|sep|>"},
	value: regexp.MustCompile(`^(?:\s+type="(\w*)")?\s*<\|sep\|>`), json: true}

func writeKimiK3(name, arguments string) string {
	e := kimiK3Elements
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
