package sokoban

import (
	"fmt"
	"strconv"
	"strings"
)

// A list shows a room as a line for each thing in it: its size, then the cells of the player, the boxes, the targets
// and the walls inside. It is shorter than a drawing, and says where a thing is, so that a small policy need not count
// cells.
//
//	6 x 6
//	P b3
//	X c4
//	O e5
//
// A cell is a letter for its row, from a at the top, and a number for its column, from 1 at the left. A box on a target
// is in two lines.

const listed = `You are in a room of a Sokoban puzzle. Push every box onto a target to win.
Each action moves you by one cell: up, down, left or right. Moving into a box pushes it, if the cell behind it is free. ` +
	`Boxes cannot be pulled, and nothing moves through walls. A box in a corner is stuck.
The room is a list of its rows and columns, then of cells: P is you, X a box, O a target, # a wall inside the room. ` +
	`The letter is the row, from a at the top, and the number the column, from 1 at the left. Walls surround the room.`

// things are the symbols of a list, in its order, with the cells that they are in.
var things = []struct {
	symbol string
	in     func(c byte) bool
}{
	{"P", func(c byte) bool { return c == player || c == playerOnTarget }},
	{"X", isBox},
	{"O", isTarget},
	{"#", func(c byte) bool { return c == wall }},
}

// list lists the room.
func list(r *room) string {
	lines := []string{dimensions(r.rows, r.cols)}
	for _, thing := range things {
		for at, c := range r.cells {
			if thing.in(c) && !r.edge(at) {
				lines = append(lines, line(thing.symbol, at/r.cols, at%r.cols))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func dimensions(rows, cols int) string { return fmt.Sprintf("%d x %d", rows, cols) }

func line(symbol string, row, col int) string {
	return symbol + " " + string(rune('a'+row)) + strconv.Itoa(col+1)
}

// edge reports whether a cell is in the outermost rows or columns, where a generated room has its wall.
func (r *room) edge(at int) bool {
	row, col := at/r.cols, at%r.cols
	return row == 0 || col == 0 || row == r.rows-1 || col == r.cols-1
}

// lines lists every line that lists of generated rooms of a size can have.
func linesOf(size int) []string {
	out := []string{dimensions(size, size)}
	for _, thing := range things {
		for row := 1; row < size-1; row++ {
			for col := 1; col < size-1; col++ {
				out = append(out, line(thing.symbol, row, col))
			}
		}
	}
	return out
}

// drawnList draws a listed room. It returns any other text unchanged.
func drawnList(observation string) string {
	lines := strings.Split(observation, "\n")
	var rows, cols int
	if _, err := fmt.Sscanf(lines[0], "%d x %d", &rows, &cols); err != nil || lines[0] != dimensions(rows, cols) ||
		min(rows, cols) < minSide || max(rows, cols) > maxSide {
		return observation
	}
	r := &room{rows: rows, cols: cols, cells: []byte(strings.Repeat(string(rune(floor)), rows*cols))}
	for at := range r.cells {
		if r.edge(at) {
			r.cells[at] = wall
		}
	}
	for _, text := range lines[1:] {
		var symbol, row string
		var col int
		if _, err := fmt.Sscanf(text, "%1s %1s%d", &symbol, &row, &col); err != nil || row < "a" ||
			int(row[0]-'a') >= rows || col < 1 || col > cols || line(symbol, int(row[0]-'a'), col-1) != text {
			return observation
		}
		if !r.set(symbol, int(row[0]-'a')*cols+col-1) {
			return observation
		}
	}
	return draw(r)
}

// set puts a thing of a list into a cell. It returns false if the cell cannot hold it.
func (r *room) set(symbol string, at int) bool {
	now := r.cells[at]
	switch {
	case symbol == "#" && now == floor:
		r.cells[at] = wall
	case symbol == "P" && now == floor:
		r.cells[at] = player
	case symbol == "X" && now == floor:
		r.cells[at] = box
	case symbol == "O" && now == floor:
		r.cells[at] = target
	case symbol == "O" && now == box:
		r.cells[at] = boxOnTarget
	case symbol == "O" && now == player:
		r.cells[at] = playerOnTarget
	default:
		return false
	}
	return true
}
