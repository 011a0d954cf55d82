package sokoban

import (
	"math/rand/v2"
	"slices"
)

const (
	// maxTries bounds the number of rooms that are drawn for one task.
	maxTries = 5_000
	// maxPulled bounds the number of states in the backward search from a solved room.
	maxPulled = 20_000
	// turnChance is the chance that the walk which digs the floor turns at a cell, as in gym-sokoban.
	turnChance = 0.35
)

// generate draws a room whose shortest solution has MinMoves to MaxMoves moves. It returns the room's rows and that
// number of moves, or nil if the drawn walls allow no such room.
//
// A random walk digs the floor. Targets with a box on each are placed on floor cells. A breadth-first search then takes
// moves back: the player steps backwards and may pull the box in front. The depth of the search is the number of moves
// of the shortest solution, because a move back is the inverse of a move. generate first draws the number of moves,
// then a room among those that need that number and have all boxes off their targets.
func (s *Sokoban) generate(rng *rand.Rand) (rows []string, moves int) {
	r := s.dig(rng)
	var ground []int
	for i, c := range r.cells {
		if c == floor {
			ground = append(ground, i)
		}
	}
	boxes := s.settings.Boxes
	if len(ground) < boxes+2 {
		return nil, 0
	}
	rng.Shuffle(len(ground), func(i, j int) { ground[i], ground[j] = ground[j], ground[i] })
	targets := slices.Sorted(slices.Values(ground[:boxes]))
	for _, at := range targets {
		r.cells[at] = target
	}
	byMoves := pulled(r, targets, s.settings.MaxMoves)
	var depths []int
	for depth := s.settings.MinMoves; depth < len(byMoves); depth++ {
		if len(byMoves[depth]) > 0 {
			depths = append(depths, depth)
		}
	}
	if len(depths) == 0 {
		return nil, 0
	}
	moves = depths[rng.IntN(len(depths))]
	choice := byMoves[moves][rng.IntN(len(byMoves[moves]))]
	for _, at := range choice.boxes[:boxes] {
		r.put(int(at), box, boxOnTarget)
	}
	r.put(int(choice.player), player, playerOnTarget)
	return r.lines(), moves
}

// dig makes a room of walls and carves floor on a random walk that starts inside the room, or everywhere inside an open
// room.
func (s *Sokoban) dig(rng *rand.Rand) *room {
	n := s.settings.Size
	r := &room{rows: n, cols: n, cells: []byte(slices.Repeat([]byte{wall}, n*n))}
	if s.settings.Open {
		for row := 1; row < n-1; row++ {
			for col := 1; col < n-1; col++ {
				r.cells[row*n+col] = floor
			}
		}
		return r
	}
	row, col := 1+rng.IntN(n-2), 1+rng.IntN(n-2)
	d := directions[rng.IntN(len(directions))]
	for range 2 * n * n / 3 {
		r.cells[row*n+col] = floor
		if rng.Float64() < turnChance {
			d = directions[rng.IntN(len(directions))]
		}
		row, col = min(max(row+d.row, 1), n-2), min(max(col+d.col, 1), n-2)
	}
	return r
}

// place holds the positions of the player and the boxes. Boxes are sorted. Unused boxes are 0, which is a wall.
type place struct {
	player uint8
	boxes  [maxBoxes]uint8
}

// moved returns the place after one box has moved, with the boxes sorted again.
func (p place) moved(player int, from, to uint8, boxes int) place {
	p.player = uint8(player)
	i := slices.Index(p.boxes[:boxes], from)
	p.boxes[i] = to
	slices.Sort(p.boxes[:boxes])
	return p
}

// pulled lists the places with all boxes off their targets, by the number of moves to the solved room.
func pulled(r *room, targets []int, deepest int) [][]place {
	var solved place
	for i, at := range targets {
		solved.boxes[i] = uint8(at)
	}
	n := len(targets)
	seen := map[place]bool{}
	var layer []place
	for at, c := range r.cells {
		if c == floor {
			p := solved
			p.player = uint8(at)
			seen[p] = true
			layer = append(layer, p)
		}
	}
	out := make([][]place, deepest+1)
	for depth := 1; depth <= deepest && len(seen) < maxPulled; depth++ {
		var next []place
		for _, p := range layer {
			for _, q := range p.back(r, n) {
				if !seen[q] {
					seen[q] = true
					next = append(next, q)
				}
			}
		}
		for _, p := range next {
			if !slices.ContainsFunc(p.boxes[:n], func(at uint8) bool { return isTarget(r.cells[at]) }) {
				out[depth] = append(out[depth], p)
			}
		}
		layer = next
	}
	return out
}

// back lists the places from which one move leads to p: the player steps back, with or without the box in front.
func (p place) back(r *room, boxes int) []place {
	var out []place
	taken := func(at int) bool { return slices.Contains(p.boxes[:boxes], uint8(at)) }
	for _, d := range directions {
		from := int(p.player) - r.step(d)
		if r.cells[from] == wall || taken(from) {
			continue
		}
		q := p
		q.player = uint8(from)
		out = append(out, q)
		if front := int(p.player) + r.step(d); taken(front) {
			out = append(out, p.moved(from, uint8(front), p.player, boxes))
		}
	}
	return out
}
