package toolcall

import (
	"fmt"
	"regexp"
)

// kimi is the form of Kimi K2. A call has an id of the tool's name and the number of the call, and results name it.
var kimi = Form{
	Name: "kimi_k2", Also: []string{"kimi"}, Families: "Kimi K2",
	Marks: []string{"<|tool_calls_section_begin|>", "<|tool_call_begin|>"},
	ID:    func(name string, i int) string { return fmt.Sprintf("functions.%s:%d", name, i) },
	grammar: headed{open: "<|tool_calls_section_begin|>", close: "<|tool_calls_section_end|>",
		begin: "<|tool_call_begin|>", end: "<|tool_call_end|>",
		head: regexp.MustCompile(`^<\|tool_call_begin\|>\s*` +
			`(?P<id>(?:functions\.)?(?P<name>[\pL\pN_.-]+?)(?::\d+)?)\s*<\|tool_call_argument_begin\|>`),
		text: "<|tool_calls_section_begin|><|tool_call_begin|>functions.%s:0<|tool_call_argument_begin|>%s" +
			"<|tool_call_end|><|tool_calls_section_end|>"},
}

// kimiK3 is the form of Kimi K3. Calls are numbered. Each argument is in an element that has its type.
var kimiK3 = Form{
	Name: "kimi_k3", Families: "Kimi K3", Marks: []string{"<|open|>tools<|sep|>", `<|open|>call tool="`},
	Think:  [2]string{"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
	Around: []string{"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"},
	grammar: elements{open: "<|open|>tools<|sep|>", close: "<|close|>tools<|sep|>", flat: true, json: true,
		call:   [3]string{`<|open|>call tool="`, `"`, "<|close|>call<|sep|>"},
		head:   regexp.MustCompile(`^(?:\s+index="\d*")?\s*<\|sep\|>`),
		number: ` index="1"<|sep|>`, arg: [3]string{`<|open|>argument key="`, `"`, "<|close|>argument<|sep|>"},
		value:  regexp.MustCompile(`^(?:\s+type="(\w*)")?\s*<\|sep\|>`),
		middle: func(kind string) string { return ` type="` + kind + `"<|sep|>` }},
}
