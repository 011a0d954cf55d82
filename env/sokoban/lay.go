package sokoban

import "strings"

// cellsOfSymbols draws each symbol of a room two columns wide, so that a room is about as wide as it is high.
var cellsOfSymbols = map[rune]string{'#': "██", '_': " ·", 'O': " O", 'X': " X", '√': " √", 'P': " P", 'S': " S"}

// lay draws the rows of a room for a person, also of a room that the policy is shown as a list: walls are blocks, and
// everything else keeps its symbol. Lines that are no rows stay as they are. The environment has no tools.
func lay(_, text string) string {
	lines := strings.Split(drawnList(text), "\n")
	for i, line := range lines {
		if row, ok := layRow(line); ok {
			lines[i] = row
		}
	}
	return strings.Join(lines, "\n")
}

// layRow draws a row; ok is false for a text that is none. A row begins and ends with a wall.
func layRow(line string) (drawn string, ok bool) {
	if len(line) < 3 || line[0] != '#' || line[len(line)-1] != '#' {
		return "", false
	}
	var b strings.Builder
	for _, symbol := range line {
		cell, known := cellsOfSymbols[symbol]
		if !known {
			return "", false
		}
		b.WriteString(cell)
	}
	return b.String(), true
}
