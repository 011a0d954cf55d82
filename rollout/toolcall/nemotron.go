package toolcall

// nemotron is the form of Nemotron Nano 2.
var nemotron = Form{
	Name: "nemotron_nano2", Families: "Nemotron Nano 2", Marks: []string{"<TOOLCALL>"},
	grammar: objects{open: "<TOOLCALL>", close: "</TOOLCALL>", list: true, name: "name",
		arguments: []string{"arguments"}},
}
