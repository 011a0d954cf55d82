package toolcall

import "regexp"

// glm is the form of GLM-4.5, 4.6 and 4.7, Laguna, Ling 3, Spark 2.5: a name, and keys and values in tags. A value is
// JSON unless it is a text. GLM-4.7 writes no line ends between them. Results follow the token <|observation|>, and no
// other token ends a turn.
var glm = Form{
	Name: "glm45", Also: []string{"glm47", "glm46", "glm", "glm4_moe", "laguna"},
	Families: "GLM-4.5, 4.6 and 4.7, Laguna, Ling 3, Spark 2.5", Marks: []string{"<tool_call>"},
	Stops: []string{"<|observation|>", "<|user|>"},
	grammar: elements{call: [3]string{"<tool_call>", "", "</tool_call>"}, json: true,
		arg: [3]string{"<arg_key>", "</arg_key>", "</arg_value>"}, value: regexp.MustCompile(`^\s*<arg_value>()`),
		middle: func(string) string { return "\n<arg_value>" }},
}
