package toolcall

import "regexp"

// deepSeekV3 is the form of DeepSeek V3 and R1: JSON in a fence behind the name.
var deepSeekV3 = Form{
	Name: "deepseek_v3", Also: []string{"deepseekv3", "deepseek_r1"}, Families: "DeepSeek V3 and R1",
	Marks: []string{deepSeekOpen, deepSeekBegin},
	grammar: headed{open: deepSeekOpen, close: deepSeekClose, begin: deepSeekBegin, end: deepSeekEnd,
		head: regexp.MustCompile("^" + deepSeekBegin + "\\s*function\\s*<｜tool▁sep｜>(?P<name>[^\n<]*)\n\\s*" +
			"```(?:json)?"),
		text: deepSeekOpen + deepSeekBegin + "function<｜tool▁sep｜>%s\n```json\n%s\n```" + deepSeekEnd +
			deepSeekClose},
}

// deepSeekV31 is the form of DeepSeek V3.1: JSON behind the name.
var deepSeekV31 = Form{
	Name: "deepseek_v31", Also: []string{"deepseekv31", "deepseek_v3_1"}, Families: "DeepSeek V3.1",
	Marks: []string{deepSeekOpen, deepSeekBegin},
	grammar: headed{open: deepSeekOpen, close: deepSeekClose, begin: deepSeekBegin, end: deepSeekEnd,
		head: regexp.MustCompile("^" + deepSeekBegin + "(?P<name>[^\n<]*)<｜tool▁sep｜>"),
		text: deepSeekOpen + deepSeekBegin + "%s<｜tool▁sep｜>%s" + deepSeekEnd + deepSeekClose},
}

// Marks of DeepSeek's calls.
const (
	deepSeekOpen  = "<｜tool▁calls▁begin｜>"
	deepSeekClose = "<｜tool▁calls▁end｜>"
	deepSeekBegin = "<｜tool▁call▁begin｜>"
	deepSeekEnd   = "<｜tool▁call▁end｜>"
)
