package toolcall

// miniMax is the form of MiniMax M2: raw values in XML, one element around all calls of a response.
var miniMax = Form{
	Name: "minimax_m2", Also: []string{"minimax-m2"}, Families: "MiniMax M2", Marks: []string{"<minimax:tool_call>"},
	grammar: elements{open: "<minimax:tool_call>", close: "</minimax:tool_call>",
		call: [3]string{`<invoke name="`, `">`, "</invoke>"},
		arg:  [3]string{`<parameter name="`, `">`, "</parameter>"}},
}
