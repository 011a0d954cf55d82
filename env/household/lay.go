package household

import (
	"regexp"
	"strings"
)

// seen are the words after which an observation lists names.
const seen = ", you see "

// item is one name of a list as the world writes it: "a desk lamp 1".
var item = regexp.MustCompile(`^a ([a-z]+) ([0-9]+)$`)

// lay lays an observation out for a person: a line for each sentence, and under a list of names one line for each class
// with its numbers. Texts that are no such list stay as they are. The environment has no tools.
func lay(_, text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = layLine(line)
	}
	return strings.Join(lines, "\n")
}

// layLine lays one line out.
func layLine(line string) string {
	head, list, found := strings.Cut(line, seen)
	if !found {
		return line
	}
	list, rest, _ := strings.Cut(list, ".")
	classes, ok := byClass(list)
	if !ok {
		return line
	}
	out := sentences(head) + ", you see\n" + classes
	if rest = strings.TrimSpace(rest); rest != "" {
		out += "\n" + rest
	}
	return out
}

// sentences gives each sentence a line.
func sentences(text string) string { return strings.ReplaceAll(text, ". ", ".\n") }

// byClass lists names by their classes, which are adjacent in the world's lists. ok is false for a text that lists
// anything else.
func byClass(list string) (lines string, ok bool) {
	var b strings.Builder
	last := ""
	for _, name := range strings.Split(strings.ReplaceAll(list, ", and ", ", "), ", ") {
		found := item.FindStringSubmatch(name)
		switch {
		case found == nil:
			return "", false
		case found[1] == last:
			b.WriteString(", " + found[2])
			continue
		case last != "":
			b.WriteString("\n")
		}
		last = found[1]
		b.WriteString("  " + last + " " + found[2])
	}
	return b.String(), true
}
