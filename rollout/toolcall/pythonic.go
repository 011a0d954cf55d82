package toolcall

// pythonic is the form of Llama 4, ToolACE, Gemma 3: a list of calls as Python writes them, which is all of the
// response.
var pythonic = Form{
	Name: "pythonic", Also: []string{"llama4_pythonic", "llama4", "toolace"}, Families: "Llama 4, ToolACE, Gemma 3",
	Marks: []string{"<|python_start|>"}, Tokens: []string{"<|python_end|>"}, Bare: "[",
	grammar: functions{open: "<|python_start|>", close: "<|python_end|>", list: true, bare: true},
}
