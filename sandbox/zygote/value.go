package zygote

import (
	"iter"
	"regexp"
	"strings"
)

// showsNothing reports that a program's last statement certainly has no value to show: it is a call of print or an
// assignment to a name, on a line that is easy to parse. The child can then compile the program as it is. Otherwise it
// has to parse the program first to look at its last statement, which touches about seventy more pages. The answer
// false is always safe.
//
// A program that redefines print without writing the name in any form other than "print(" is not detected; it loses the
// value of its last expression.
func showsNothing(code string) bool {
	code = strings.TrimRight(code, " \t\n")
	start := strings.LastIndexByte(code, '\n') + 1
	line := code[start:]
	if before := strings.TrimRight(code[:start], "\n"); strings.HasSuffix(before, "\\") {
		return false // the line continues the one before
	}
	statement, ok := lastStatement(line)
	return ok && (assigns(statement) || strings.HasPrefix(statement, "print(") && callEnds(statement) &&
		onlyCalled(code))
}

// assignment matches a name and an operator that binds it.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*[ \t]*(?:[-+*/%@&|^]|//|\*\*|<<|>>)?=(?:[^=]|$)`)

// assigns reports whether a statement binds a name and is complete on this line. If its brackets match, and those of
// the program do, it is not inside brackets that an earlier line opened, where it would be an argument.
func assigns(statement string) bool {
	if !assignment.MatchString(statement) {
		return false
	}
	depth := 0
	for _, c := range unquoted(statement) {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return depth == 0
}

// lastStatement returns what follows the last semicolon outside of strings. It gives up on lines that are hard to
// parse: those with backslashes, comments, braces (format strings) or triple quotes.
func lastStatement(line string) (string, bool) {
	from := 0
	var quote byte
	for i := range len(line) {
		c := line[i]
		switch {
		case c == '\\' || c == '#' || c == '{':
			return "", false
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			if i+2 < len(line) && line[i+1] == c && line[i+2] == c {
				return "", false
			}
			quote = c
		case c == ';':
			from = i + 1
		}
	}
	return strings.TrimLeft(line[from:], " \t"), quote == 0
}

// unquoted yields the bytes of a statement that are outside of strings. The statement comes from lastStatement, so it
// has no backslashes and no triple quotes.
func unquoted(statement string) iter.Seq2[int, byte] {
	return func(yield func(int, byte) bool) {
		var quote byte
		for i := range len(statement) {
			c := statement[i]
			switch {
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case !yield(i, c):
				return
			}
		}
	}
}

// callEnds reports whether the statement's last character closes its first parenthesis.
func callEnds(statement string) bool {
	depth := 0
	for i, c := range unquoted(statement) {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i == len(statement)-1
			}
		}
	}
	return false
}

// onlyCalled reports whether the code uses the word print only to call it.
func onlyCalled(code string) bool {
	for rest := code; ; {
		at := strings.Index(rest, "print")
		if at < 0 {
			return true
		}
		before, after := rest[:at], rest[at+len("print"):]
		if !strings.HasPrefix(after, "(") || strings.HasSuffix(strings.TrimRight(before, " \t"), "def") {
			return false
		}
		rest = after
	}
}
