package toolcall

// cohere is the form of Command R7B, Command A.
var cohere = Form{
	Name: "cohere_command3", Also: []string{"command", "cohere", "cohere_command4"},
	Families: "Command R7B, Command A", Marks: []string{"<|START_ACTION|>"},
	Think:  [2]string{"<|START_THINKING|>", "<|END_THINKING|>"},
	Around: []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"},
	grammar: objects{open: "<|START_ACTION|>", close: "<|END_ACTION|>", list: true, name: "tool_name",
		arguments: []string{"parameters"}},
}
