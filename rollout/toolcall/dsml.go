package toolcall

import (
	"fmt"
	"regexp"
	"strings"
)

// dsml is the form of DeepSeek V3.2 and V4: elements whose attribute tells whether the value is a text or JSON.
var dsml = Form{
	Name: "deepseek_v32", Also: []string{"deepseekv32", "deepseek_v4", "deepseekv4"},
	Families: "DeepSeek V3.2 and V4",
	Marks:    []string{"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke"},
	grammar: dsmlCalls{elements{open: "<｜DSML｜function_calls>", close: "</｜DSML｜function_calls>", json: true,
		call:   [3]string{`<｜DSML｜invoke name="`, `">`, "</｜DSML｜invoke>"},
		arg:    [3]string{`<｜DSML｜parameter name="`, `"`, "</｜DSML｜parameter>"},
		value:  regexp.MustCompile(`^(?:\s*string="(true|false)")?\s*>`),
		middle: func(kind string) string { return fmt.Sprintf(` string="%t">`, kind == "string") }}},
}

// dsmlCalls have another element around them in V4.
type dsmlCalls struct{ elements }

func (d dsmlCalls) read(text string, tools []Tool, ended bool) reading {
	if strings.HasPrefix(text, "<｜DSML｜tool_calls>") {
		d.open, d.close = "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"
	}
	return d.elements.read(text, tools, ended)
}
