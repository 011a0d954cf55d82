package toolcall

import "regexp"

// toolCalls is the form of Hunyuan A13B, Jamba, MiniMax M1, Apriel.
var toolCalls = Form{
	Name: "tool_calls", Also: []string{"hunyuan_a13b", "jamba", "minimax_m1", "minimax", "apriel"},
	Families: "Hunyuan A13B, Jamba, MiniMax M1, Apriel", Marks: []string{"<tool_calls>"},
	grammar: objects{open: "<tool_calls>", close: "</tool_calls>", list: true, name: "name",
		arguments: []string{"arguments"}},
}

// hunyuan3 is the form of Hunyuan 3: GLM's with other tags, and an element around all calls.
var hunyuan3 = Form{
	Name: "hunyuan_v3", Also: []string{"hy_v3"}, Families: "Hunyuan 3", Marks: []string{"<tool_calls:opensource>"},
	Think: [2]string{"<think:opensource>", "</think:opensource>"},
	grammar: elements{open: "<tool_calls:opensource>", close: "</tool_calls:opensource>", json: true,
		call:   [3]string{"<tool_call:opensource>", "<tool_sep:opensource>", "</tool_call:opensource>"},
		arg:    [3]string{"<arg_key:opensource>", "</arg_key:opensource>", "</arg_value:opensource>"},
		value:  regexp.MustCompile(`^\s*<arg_value:opensource>()`),
		middle: func(string) string { return "\n<arg_value:opensource>" }},
}
