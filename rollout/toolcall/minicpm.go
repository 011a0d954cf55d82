package toolcall

// miniCPM is the form of MiniCPM 5.
var miniCPM = Form{
	Name: "minicpm5", Families: "MiniCPM 5", Marks: []string{`<function name="`},
	grammar: elements{call: [3]string{`<function name="`, `">`, "</function>"},
		arg: [3]string{`<param name="`, `">`, "</param>"}},
}
