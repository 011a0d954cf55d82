package toolcall

import "regexp"

// functionary is the form of Functionary 3.1, which Llama 3.1's own prompts for tools describe: an element that names
// the tool and holds a JSON object.
var functionary = Form{
	Name: "functionary_v31", Families: "Functionary 3.1, Llama 3.1",
	Example: `<function=f>{"k": "v"}</function>`,
	Marks:   []string{"<function="}, Stops: []string{"<|eom_id|>"}, read: functionaryHeads.read,
	write: func(name, arguments string) string { return "<function=" + name + ">" + arguments + "</function>" },
}

var functionaryHeads = headed{begin: "<function=", end: "</function>",
	head: regexp.MustCompile(`^<function=(?P<name>[\pL\pN_.:-]+)>`)}
