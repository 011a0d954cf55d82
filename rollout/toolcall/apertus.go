package toolcall

// apertus is the form of Apertus. An object's only key is the tool's name.
var apertus = Form{
	Name: "apertus", Families: "Apertus", Marks: []string{"<|tools_prefix|>"}, Stops: []string{"<|tools_suffix|>"},
	Think:   [2]string{"<|inner_prefix|>", "<|inner_suffix|>"},
	grammar: objects{open: "<|tools_prefix|>", close: "<|tools_suffix|>", keyed: true, list: true},
}
