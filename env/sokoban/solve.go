package sokoban

import (
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/env"
)

// maxExpanded bounds the number of positions that the expert expands for one solution.
const maxExpanded = 300_000

// Solve returns a solution with the fewest moves that fits the remaining turns, or env.ErrUnsolved.
//
// It is an A* search whose edges are pushes. The cost of a push is the walk to the box plus the push itself. The lower
// bound on the remaining moves is the cheapest assignment of boxes to targets, counted in pushes in a room without
// other boxes. A box that cannot reach any target in this way is stuck, and the search drops the position.
func (*Sokoban) Solve(ctx context.Context, at env.State) ([]string, error) {
	s, r, err := readState(at)
	if err != nil {
		return nil, err
	}
	if s.Ended {
		return nil, fmt.Errorf("solve a sokoban room at turn %d: %w", s.Turn, env.ErrEnded)
	}
	search := newSearch(r, s.Limit-s.Turn)
	last, err := search.run(ctx)
	if err != nil {
		return nil, err
	}
	return search.actions(last), nil
}

// node is a position after a push, and how it was reached.
type node struct {
	place
	cost, bound int // moves so far, and a lower bound on the moves of a solution through this node
	parent      int // index of the previous node; −1 at the start
	push        int // direction of the last push
	index       int // order of discovery, to break ties
}

// frontier is a heap of nodes ordered by bound. Among equal bounds, the deeper node comes first, then the older one.
type frontier []node

func (f frontier) Len() int { return len(f) }
func (f frontier) Less(i, j int) bool {
	a, b := f[i], f[j]
	if a.bound != b.bound {
		return a.bound < b.bound
	}
	if a.cost != b.cost {
		return a.cost > b.cost
	}
	return a.index < b.index
}
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)   { *f = append(*f, x.(node)) }
func (f *frontier) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

type search struct {
	room    *room // walls and targets; its boxes and player are at the start
	boxes   int
	limit   int     // maximum number of moves
	far     [][]int // for each target, pushes from each cell to the target; −1 if there is no way
	closed  []node
	walked  []int // scratch: moves of the walk to each cell; −1 if the cell cannot be reached
	through []int // scratch: direction of the walk's last move into a cell
}

func newSearch(r *room, limit int) *search {
	s := &search{room: r, limit: limit, walked: make([]int, len(r.cells)), through: make([]int, len(r.cells))}
	for at, c := range r.cells {
		if isBox(c) {
			s.boxes++
		}
		if isTarget(c) {
			s.far = append(s.far, s.pushes(at))
		}
	}
	return s
}

// pushes counts, for each cell, the pushes that take a box from the cell to the target in a room without other boxes.
func (s *search) pushes(target int) []int {
	far := slices.Repeat([]int{-1}, len(s.room.cells))
	far[target] = 0
	for queue := []int{target}; len(queue) > 0; queue = queue[1:] {
		for _, d := range directions {
			// A box came here from `from`. The player who pushed it was one cell further back.
			from := queue[0] - s.room.step(d)
			back := from - s.room.step(d)
			if s.free(from) && s.free(back) && far[from] < 0 {
				far[from] = far[queue[0]] + 1
				queue = append(queue, from)
			}
		}
	}
	return far
}

// free reports whether a cell exists and is not a wall.
func (s *search) free(at int) bool {
	return at >= 0 && at < len(s.room.cells) && s.room.cells[at] != wall
}

// left returns a lower bound on the pushes from a position to a solved one. ok is false if a box is stuck.
func (s *search) left(boxes []uint8) (pushes int, ok bool) {
	return s.assign(boxes, 0)
}

// assign tries each target that is not in used for the first box, and the remaining targets for the other boxes.
func (s *search) assign(boxes []uint8, used int) (best int, ok bool) {
	if len(boxes) == 0 {
		return 0, true
	}
	for i, far := range s.far {
		way := far[boxes[0]]
		if way < 0 || used&(1<<i) != 0 {
			continue
		}
		if rest, fits := s.assign(boxes[1:], used|1<<i); fits && (!ok || way+rest < best) {
			best, ok = way+rest, true
		}
	}
	return best, ok
}

func (s *search) run(ctx context.Context) (last int, err error) {
	start := node{parent: -1, push: -1}
	start.player = uint8(s.room.player)
	i := 0
	for at, c := range s.room.cells {
		if isBox(c) {
			start.boxes[i] = uint8(at)
			i++
		}
	}
	open := &frontier{}
	best := map[place]int{}
	s.offer(open, best, start)
	for open.Len() > 0 {
		n := heap.Pop(open).(node)
		if n.cost > best[n.place] {
			continue // the place has been reached by a shorter way in the meantime
		}
		if len(s.closed) == maxExpanded {
			break
		}
		if len(s.closed)%1024 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		s.closed = append(s.closed, n)
		if n.bound == n.cost {
			return len(s.closed) - 1, nil
		}
		s.expand(open, best, n)
	}
	return 0, fmt.Errorf("%w: %d positions were tried, %d moves are left", env.ErrUnsolved, len(s.closed), s.limit)
}

// offer adds a node to the frontier unless its place is already known at the same or lower cost, a box is stuck, or the
// solution would be too long.
func (s *search) offer(open *frontier, best map[place]int, n node) {
	if cost, known := best[n.place]; known && cost <= n.cost {
		return
	}
	pushes, ok := s.left(n.boxes[:s.boxes])
	if !ok || n.cost+pushes > s.limit {
		return
	}
	best[n.place] = n.cost
	n.bound, n.index = n.cost+pushes, len(best)
	heap.Push(open, n)
}

// expand offers the result of each possible push.
func (s *search) expand(open *frontier, best map[place]int, n node) {
	s.walk(n.place)
	for _, at := range n.boxes[:s.boxes] {
		for k, d := range directions {
			stand, to := int(at)-s.room.step(d), int(at)+s.room.step(d)
			if !s.free(stand) || s.walked[stand] < 0 || !s.free(to) || slices.Contains(n.boxes[:s.boxes], uint8(to)) {
				continue
			}
			s.offer(open, best, node{
				place: n.moved(int(at), at, uint8(to), s.boxes), cost: n.cost + s.walked[stand] + 1,
				parent: len(s.closed) - 1, push: k,
			})
		}
	}
}

// walk computes the player's distance to each cell and the last move of the way there.
func (s *search) walk(p place) {
	for i := range s.walked {
		s.walked[i] = -1
	}
	s.walked[p.player] = 0
	for queue := []int{int(p.player)}; len(queue) > 0; queue = queue[1:] {
		for k, d := range directions {
			next := queue[0] + s.room.step(d)
			if s.free(next) && s.walked[next] < 0 && !slices.Contains(p.boxes[:s.boxes], uint8(next)) {
				s.walked[next], s.through[next] = s.walked[queue[0]]+1, k
				queue = append(queue, next)
			}
		}
	}
}

// actions returns the moves that lead to a closed node.
func (s *search) actions(last int) []string {
	var back []string
	for n := s.closed[last]; n.parent >= 0; n = s.closed[n.parent] {
		back = append(back, directions[n.push].name)
		before := s.closed[n.parent].place
		s.walk(before)
		stand := int(n.player) - s.room.step(directions[n.push])
		for at := stand; at != int(before.player); at -= s.room.step(directions[s.through[at]]) {
			back = append(back, directions[s.through[at]].name)
		}
	}
	slices.Reverse(back)
	return back
}
