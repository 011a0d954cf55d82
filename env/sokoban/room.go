package sokoban

import (
	"errors"
	"fmt"
	"strings"
)

// Cells of a room in Boxoban's form.
const (
	wall           = '#'
	floor          = ' '
	target         = '.'
	box            = '$'
	boxOnTarget    = '*'
	player         = '@'
	playerOnTarget = '+'
)

// The bounds of a room. A side has at least three cells, and the index of a cell fits in a byte.
const (
	minSide = 3
	maxSide = 15
	// maxBoxes bounds the boxes of a room and so the solver's states.
	maxBoxes = 6
)

// direction is a step in the grid.
type direction struct {
	name     string
	row, col int
}

// directions has the order in which gym-sokoban numbers the directions.
var directions = [4]direction{{"up", -1, 0}, {"down", 1, 0}, {"left", 0, -1}, {"right", 0, 1}}

// still is the action that does not move the player.
const still = "still"

// rowFault is a fault of one row of a room, counted from 0.
type rowFault struct {
	row  int
	text string
}

func (f rowFault) Error() string { return fmt.Sprintf("row %d %s", f.row, f.text) }

// room is a grid, row by row. Only push changes it in place.
type room struct {
	rows, cols int
	cells      []byte
	player     int
}

// parseRoom reads a room from rows in Boxoban's form. It checks that the room is a rectangle, that a closed wall
// surrounds all cells that the player can reach, and that there are one player and as many boxes as targets.
func parseRoom(rows []string) (*room, error) {
	if len(rows) < minSide || len(rows) > maxSide || len(rows[0]) < minSide || len(rows[0]) > maxSide {
		return nil, fmt.Errorf("a room has %d to %d rows and columns", minSide, maxSide)
	}
	r := &room{rows: len(rows), cols: len(rows[0]), cells: []byte(strings.Join(rows, "")), player: -1}
	boxes, targets := 0, 0
	for i, row := range rows {
		if len(row) != r.cols {
			return nil, rowFault{i, fmt.Sprintf("has %d cells, the first has %d", len(row), r.cols)}
		}
	}
	for i, c := range r.cells {
		switch c {
		case wall, floor:
		case target:
			targets++
		case box:
			boxes++
		case boxOnTarget:
			boxes, targets = boxes+1, targets+1
		case player, playerOnTarget:
			if r.player >= 0 {
				return nil, errors.New("the room has two players")
			}
			r.player = i
			if c == playerOnTarget {
				targets++
			}
		default:
			return nil, rowFault{i / r.cols, fmt.Sprintf("has %q in cell %d, want one of %q", c, i%r.cols, "# .$*@+")}
		}
	}
	switch {
	case r.player < 0:
		return nil, errors.New("the room has no player")
	case boxes != targets || boxes == 0 || boxes > maxBoxes:
		return nil, fmt.Errorf("the room has %d boxes and %d targets, want as many of both, 1 to %d", boxes, targets,
			maxBoxes)
	case !r.closed():
		return nil, errors.New("the player can leave the room: its edge is open")
	}
	return r, nil
}

// closed reports whether no floor that the player could reach is at the edge of the grid.
func (r *room) closed() bool {
	seen := make([]bool, len(r.cells))
	seen[r.player] = true
	for queue := []int{r.player}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		row, col := at/r.cols, at%r.cols
		if row == 0 || col == 0 || row == r.rows-1 || col == r.cols-1 {
			return false
		}
		for _, d := range directions {
			if next := at + r.step(d); r.cells[next] != wall && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return true
}

// step returns a direction as a difference of cell indices.
func (r *room) step(d direction) int { return d.row*r.cols + d.col }

// lines returns the room's rows in Boxoban's form.
func (r *room) lines() []string {
	out := make([]string, r.rows)
	for i := range out {
		out[i] = string(r.cells[i*r.cols : (i+1)*r.cols])
	}
	return out
}

func isBox(c byte) bool    { return c == box || c == boxOnTarget }
func isTarget(c byte) bool { return c == target || c == boxOnTarget || c == playerOnTarget }
func isFree(c byte) bool   { return c == floor || c == target }

// push moves the player by one cell and pushes the box in the way, if there is one. It reports whether anything moved.
// A closed room has a wall at its edge, so no index leaves the grid: a box at the edge cannot be pushed further.
func (r *room) push(d direction) bool {
	next := r.player + r.step(d)
	if isBox(r.cells[next]) {
		behind := next + r.step(d)
		if behind < 0 || behind >= len(r.cells) || !isFree(r.cells[behind]) {
			return false
		}
		r.put(behind, box, boxOnTarget)
		r.take(next)
	}
	if !isFree(r.cells[next]) {
		return false
	}
	r.take(r.player)
	r.put(next, player, playerOnTarget)
	r.player = next
	return true
}

// put sets a free cell to plain, or to onTarget if the cell is a target.
func (r *room) put(at int, plain, onTarget byte) {
	if r.cells[at] == target {
		r.cells[at] = onTarget
	} else {
		r.cells[at] = plain
	}
}

// take removes what is on the cell and leaves its floor or target.
func (r *room) take(at int) {
	if isTarget(r.cells[at]) {
		r.cells[at] = target
	} else {
		r.cells[at] = floor
	}
}

// done counts the boxes on targets and those off targets.
func (r *room) done() (on, off int) {
	for _, c := range r.cells {
		switch c {
		case boxOnTarget:
			on++
		case box:
			off++
		}
	}
	return on, off
}
