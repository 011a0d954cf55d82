package toolcall

// qwenCoder is the form of Qwen3-Coder, Qwen3.5 to 3.8, Nemotron 3, Step 3.5: raw values in XML. Histories write what
// is no text as JSON, and some write true as True. Models leave the outer tag out at times.
var qwenCoder = Form{
	Name: "qwen3_coder", Also: []string{"qwen3_xml", "qwen3_5", "nemotron3", "step3p5", "step3"},
	Families: "Qwen3-Coder, Qwen3.5 to 3.8, Nemotron 3, Step 3.5", Marks: []string{"<tool_call>", "<function="},
	grammar: elements{open: "<tool_call>", close: "</tool_call>", lines: true, call: qwenCall,
		arg: qwenArgument},
}

// Elements of Qwen3-Coder's calls and of their arguments.
var (
	qwenCall     = [3]string{"<function=", ">", "</function>"}
	qwenArgument = [3]string{"<parameter=", ">", "</parameter>"}
)
