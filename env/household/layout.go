package household

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/seed"
)

// layout is a room without its things. The lamps are part of the layout.
type layout struct {
	name   string // "kitchen 12"
	kind   room
	places []place
	lamps  []thing
}

// layouts makes the distinct layouts of the settings, and divides them into those that training shows and those that it
// never shows. The division depends on a layout's content, so equal layouts are on the same side.
func (s Settings) layouts() (shown, unseen []layout) {
	for _, r := range rooms {
		if len(s.Rooms) > 0 && !slices.Contains(s.Rooms, r.name) {
			continue
		}
		distinct := map[string]bool{}
		var all []layout
		for n := 1; n <= s.Layouts; n++ {
			l := s.layout(r, n)
			if key := l.key(); !distinct[key] {
				distinct[key] = true
				all = append(all, l)
			}
		}
		slices.SortFunc(all, func(a, b layout) int { return cmp.Compare(a.digest(), b.digest()) })
		n := unseenOf(len(all))
		unseen, shown = append(unseen, all[:n]...), append(shown, all[n:]...)
	}
	return shown, unseen
}

// unseenOf is the number of layouts that training never shows: a sixth, and at least one if there are two.
func unseenOf(layouts int) int {
	if layouts < 2 {
		return 0
	}
	return max(1, layouts/6)
}

// key is the layout's content.
func (l layout) key() string {
	var b strings.Builder
	for _, p := range l.places {
		fmt.Fprintf(&b, "%s %c, ", p.name(), p.door)
	}
	for _, t := range l.lamps {
		fmt.Fprintf(&b, "%s %s, ", t.name(), t.at)
	}
	return b.String()
}

func (l layout) digest() string {
	sum := sha256.Sum256([]byte(l.key()))
	return string(sum[:])
}

// layout makes one layout of a kind of room. Its random stream depends on the room's name and number alone.
func (s Settings) layout(r room, number int) layout {
	rng := seed.Rand("household layout "+r.name, uint64(number))
	l := layout{name: fmt.Sprintf("%s %d", r.name, number), kind: r}
	var all []place
	for _, st := range r.places {
		n := st.min + rng.IntN(st.max-st.min+1)
		for i := range n {
			p := place{class: st.class, number: i + 1, door: noDoor}
			lacks := rng.IntN(8) == 0 && (st.class == "cabinet" || st.class == "drawer")
			if slices.Contains(doors, st.class) && !lacks {
				p.door = closed
			}
			all = append(all, p)
		}
	}
	if s.Places > 0 {
		all = s.fewer(all, rng.Perm(len(all)))
	}
	l.places = all
	var stands []int
	for i, p := range all {
		if holds(p.class, lamp) {
			stands = append(stands, i)
		}
	}
	if len(stands) > 0 {
		for i := range 1 + rng.IntN(2) {
			k, _ := kindNamed(lamp)
			at := spots{stands[rng.IntN(len(stands))]}
			l.lamps = append(l.lamps, thing{class: lamp, number: i + 1, at: at, can: k.can})
		}
	}
	return l
}

// fewer keeps as many places as the settings ask for: first one of each appliance that the task types need and one
// place for a lamp, then others in the given order. Places keep their order and are numbered again.
func (s Settings) fewer(all []place, order []int) []place {
	var kept []int
	keep := func(i int) {
		if i >= 0 && len(kept) < s.Places && !slices.Contains(kept, i) {
			kept = append(kept, i)
		}
	}
	for _, t := range s.types() {
		for _, i := range order {
			if all[i].class == t.appliance || t.count == 0 && holds(all[i].class, lamp) {
				keep(i)
				break
			}
		}
	}
	for _, i := range order {
		keep(i)
	}
	slices.Sort(kept)
	numbers := map[string]int{}
	out := make([]place, len(kept))
	for k, i := range kept {
		out[k] = all[i]
		numbers[all[i].class]++
		out[k].number = numbers[all[i].class]
	}
	return out
}

// has reports whether the layout has a place of the class.
func (l layout) has(class string) bool {
	return slices.ContainsFunc(l.places, func(p place) bool { return p.class == class })
}
