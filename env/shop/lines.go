package shop

import "strings"

// lay lays an observation out for a person to read. The shop has no tools.
func lay(_, page string) string { return lines(page) }

// asked is the goal in a prompt: what follows the instruction on its line.
func asked(prompt string) string {
	_, goal, _ := strings.Cut(prompt, instructed)
	goal, _, _ = strings.Cut(goal, "\n")
	return goal
}

// lines lays a page out: a line for each of its texts, and one for each product of a list.
func lines(page string) string {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(page, "'"), "'"), separator)
	var b strings.Builder
	for i, part := range parts {
		switch {
		case i == 0:
		case i >= 2 && isID(parts[i-2]) && strings.HasPrefix(part, "$"), isID(parts[i-1]):
			b.WriteString("  ")
		default:
			b.WriteString("\n")
		}
		b.WriteString(part)
	}
	return b.String()
}

// isID reports whether a text is the id of a product.
func isID(text string) bool {
	return len(text) == len(idPrefix)+8 && strings.HasPrefix(text, idPrefix) && !strings.Contains(text, " ")
}
