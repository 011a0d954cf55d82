package toolcall

// internLM is the form of InternLM 2 and 2.5: objects between tokens that name the kind of action.
var internLM = Form{
	Name: "internlm", Also: []string{"internlm2"}, Families: "InternLM 2 and 2.5",
	Marks: []string{"<|action_start|><|plugin|>"},
	grammar: objects{open: "<|action_start|><|plugin|>", close: "<|action_end|>", line: "\n", name: "name",
		arguments: []string{"parameters", "arguments"}},
}
