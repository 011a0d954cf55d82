package toolcall

// granite is the form of Granite 3: a list up to the end of the turn.
var granite = Form{
	Name: "granite", Families: "Granite 3", Marks: []string{"<|tool_call|>"},
	grammar: objects{open: "<|tool_call|>", list: true, name: "name", arguments: []string{"arguments"}},
}

// graniteCode is the form of Granite 20B for calls: one object behind a tag that has no end.
var graniteCode = Form{
	Name: "granite-20b-fc", Families: "Granite 20B for calls", Marks: []string{"<function_call>"},
	grammar: objects{open: "<function_call>", name: "name", arguments: []string{"arguments"}},
}
