package toolcall

// seedOSS is the form of Seed-OSS. It has its own tags for calls and for reasoning.
var seedOSS = Form{
	Name: "seed_oss", Families: "Seed-OSS", Marks: []string{"<seed:tool_call>"},
	Think: [2]string{"<seed:think>", "</seed:think>"},
	grammar: elements{open: "<seed:tool_call>", close: "</seed:tool_call>", call: qwenCall,
		arg: qwenArgument},
}
