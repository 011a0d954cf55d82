package toolcall

// llamaJSON is the form of Llama 3.1, 3.2, 3.3 and 4: an object that is all of the response, with or without a mark
// before it and with semicolons between several.
var llamaJSON = Form{
	Name: "llama3_json", Also: []string{"llama3", "llama4_json", "llama_json"},
	Families: "Llama 3.1, 3.2, 3.3 and 4", Marks: []string{"<|python_tag|>"}, Bare: "{",
	Stops: []string{"<|eom_id|>"},
	grammar: objects{open: "<|python_tag|>", between: ";,", bare: true, name: "name",
		arguments: []string{"parameters", "arguments"}},
}
