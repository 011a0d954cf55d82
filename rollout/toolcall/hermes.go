package toolcall

// hermes is the form of Hermes 2, Qwen2.5, Qwen3, QwQ, Granite 4, SmolLM, Reka, Exaone 4. Results come back in a turn
// of the user, between <tool_response> tags.
var hermes = Form{
	Name: "hermes", Also: []string{"qwen25", "qwen", "qwen3", "granite4"},
	Families: "Hermes 2, Qwen2.5, Qwen3, QwQ, Granite 4, SmolLM, Reka, Exaone 4", Marks: []string{"<tool_call>"},
	grammar: objects{open: "<tool_call>", close: "</tool_call>", line: "\n", name: "name",
		arguments: []string{"arguments", "parameters"}},
}
