package toolcall

// phi is the form of Phi-4-mini, xLAM: a list that is all of the response.
var phi = Form{
	Name: "phi4_mini_json", Also: []string{"phi4_mini", "xlam"}, Families: "Phi-4-mini, xLAM",
	Marks: []string{"functools"}, Bare: "[",
	grammar: objects{open: "functools", list: true, bare: true, name: "name",
		arguments: []string{"arguments", "parameters"}},
}
