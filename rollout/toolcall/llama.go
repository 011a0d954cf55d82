package toolcall

// llamaJSON is the form of Llama 3: an object that is all of the response, with or without a mark before it and with
// semicolons between several.
var llamaJSON = Form{
	Name: "llama3_json", Also: []string{"llama3", "llama4_json", "llama_json"}, Families: "Llama 3.1, 3.2, 3.3 and 4",
	Marks: []string{llamaObjects.open}, Bare: []string{"{"}, Stops: []string{"<|eom_id|>"},
	read: llamaObjects.read,
	write: func(name, arguments string) string {
		return `{"name": ` + quote(name) + `, "parameters": ` + arguments + "}"
	},
}

var llamaObjects = objects{open: "<|python_tag|>", between: ";,", name: []string{"name"},
	arguments: []string{"parameters", "arguments"}}
