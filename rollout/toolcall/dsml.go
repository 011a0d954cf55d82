package toolcall

import (
	"fmt"
	"regexp"
	"strings"
)

// dsml is the form of DeepSeek V3.2 and V4: elements whose attribute says whether the value is a text or JSON.
var dsml = Form{
	Name: "deepseek_v32", Also: []string{"deepseekv32", "deepseek_v4", "deepseekv4"}, Families: "DeepSeek V3.2 and V4",
	Marks: []string{"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke"},
	read: func(text string, tools []Tool, ended bool) reading {
		e := dsmlElements
		if strings.HasPrefix(text, dsmlV4[0]) {
			e.open, e.close = dsmlV4[0], dsmlV4[1]
		}
		return e.read(text, tools, ended)
	},
	write: dsmlElements.write,
}

// dsmlV4 is the element around calls in V4.
var dsmlV4 = [2]string{"<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"}

var dsmlElements = elements{open: "<｜DSML｜function_calls>", close: "</｜DSML｜function_calls>",
	call:  [3]string{`<｜DSML｜invoke name="`, `">`, "</｜DSML｜invoke>"},
	arg:   [3]string{`<｜DSML｜parameter name="`, `"`, "</｜DSML｜parameter>"},
	value: regexp.MustCompile(`^(?:\s*string="(true|false)")?\s*>`), json: true,
	middle: func(text bool) string { return fmt.Sprintf(` string="%t">`, text) }}
