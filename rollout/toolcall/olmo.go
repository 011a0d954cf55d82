package toolcall

// olmo is the form of OLMo 3: a call in each line, with JSON's literals.
var olmo = Form{
	Name: "olmo3", Families: "OLMo 3", Marks: []string{"<function_calls>"},
	grammar: functions{open: "<function_calls>", close: "</function_calls>"},
}
