package toolcall

// gigaChat is the form of GigaChat 3.1: one object behind a token.
var gigaChat = Form{
	Name: "gigachat3", Families: "GigaChat 3.1", Marks: []string{"<|function_call|>"},
	grammar: objects{open: "<|function_call|>", name: "name", arguments: []string{"arguments"}},
}
