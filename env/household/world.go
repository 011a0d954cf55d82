package household

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// Values of place.door.
const (
	noDoor byte = '-'
	closed byte = 'c'
	opened byte = 'o'
)

// place is where things can lie.
type place struct {
	class  string
	number int
	door   byte
}

func (p place) name() string { return p.class + " " + strconv.Itoa(p.number) }

// shows reports whether what lies in the place can be seen and taken.
func (p place) shows() bool { return p.door != closed }

// inHand is the place of the thing that the agent carries.
const inHand = -1

// thing is one thing of the room.
type thing struct {
	class  string
	number int
	at     spots // indices of the places where it lies, or inHand: one place, but for some things of ALFWorld's games
	is     marks
	can    marks
	// near are the locations of which ALFWorld's domain notes that the thing is there, and left are the places that it
	// was taken from. In a generated room both follow from at, and are empty.
	near, left spots
}

func (t thing) name() string { return t.class + " " + strconv.Itoa(t.number) }

// world is a task, or the state of an episode of it.
type world struct {
	Room   string // name of the layout, or of the game
	Goal   goal
	Places []place // by class, then by number
	Things []thing // by class, then by number
	You    int     // location of the agent; −1 in the middle of a generated room
	Turn   int     // turns taken
	Limit  int
	Ended  bool

	game *game // nil in a generated room
}

// written is a world in JSON. Equal worlds have equal bytes.
type written struct {
	Room   string `json:"room"`
	Goal   goal   `json:"goal"`
	Places string `json:"places"` // "cabinet 1 c, desk 1 -": name and door
	// Things is "mug 1 @3 5, pen 1 @-1 0": name, indices of the places, marks; in a game also near and left.
	Things string `json:"things"`
	You    int    `json:"you"`
	Turn   int    `json:"turn"`
	Limit  int    `json:"limit"`
	Ended  bool   `json:"ended,omitempty"`
}

func (w *world) encode() []byte {
	places, things := make([]string, len(w.Places)), make([]string, len(w.Things))
	for i, p := range w.Places {
		places[i] = p.name() + " " + string(p.door)
	}
	for i, t := range w.Things {
		things[i] = t.name() + " " + t.at.String() + " " + strconv.Itoa(int(t.is))
		if w.game != nil {
			things[i] += " " + t.near.String() + " " + t.left.String()
		}
	}
	text, err := json.Marshal(written{Room: w.Room, Goal: w.Goal, Places: strings.Join(places, ", "),
		Things: strings.Join(things, ", "), You: w.You, Turn: w.Turn, Limit: w.Limit, Ended: w.Ended})
	if err != nil {
		panic(err) // numbers and text always have a JSON form
	}
	return text
}

// decode reads a world and refuses one that no episode can be in.
func (e *Household) decode(text []byte) (*world, error) {
	var f written
	if err := env.Decode(text, &f); err != nil {
		return nil, err
	}
	w := &world{Room: f.Room, Goal: f.Goal, You: f.You, Turn: f.Turn, Limit: f.Limit, Ended: f.Ended}
	if err := e.identify(w); err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(f.Places, ", ") {
		p, ok := readPlace(text)
		if !ok || !w.knowsPlace(p) {
			return nil, fmt.Errorf("%q is no place", text)
		}
		w.Places = append(w.Places, p)
	}
	if f.Things != "" {
		for text := range strings.SplitSeq(f.Things, ", ") {
			t, ok := readThing(text)
			if !ok || !w.knowsThing(&t) {
				return nil, fmt.Errorf("%q is no thing", text)
			}
			w.Things = append(w.Things, t)
		}
	}
	return w, w.check()
}

// identify finds the world's game and checks its goal.
func (e *Household) identify(w *world) (err error) {
	if e.games == nil {
		return w.Goal.check()
	}
	if w.game, err = e.games.named(w.Room); err == nil && w.Goal != w.game.start.Goal {
		err = fmt.Errorf("the goal is %+v", w.Goal)
	}
	return err
}

// knowsPlace reports whether the world's next place can be p.
func (w *world) knowsPlace(p place) bool {
	if w.game == nil {
		return slices.Contains(placeClasses, p.class)
	}
	i := len(w.Places)
	return i < len(w.game.start.Places) && w.game.start.Places[i].name() == p.name()
}

// knowsThing reports whether the world's next thing can be t, and completes t with what never changes.
func (w *world) knowsThing(t *thing) bool {
	if w.game == nil {
		k, ok := kindNamed(t.class)
		t.can = k.can
		return ok && len(t.at) == 1 && t.near == nil && t.left == nil
	}
	i := len(w.Things)
	if i >= len(w.game.start.Things) || w.game.start.Things[i].name() != t.name() {
		return false
	}
	t.can = w.game.start.Things[i].can
	return true
}

func readPlace(text string) (p place, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 || len(parts[2]) != 1 || !strings.Contains("-co", parts[2]) {
		return p, false
	}
	number, err := strconv.Atoi(parts[1])
	return place{class: parts[0], number: number, door: parts[2][0]}, err == nil && number > 0
}

func readThing(text string) (t thing, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 4 && len(parts) != 6 {
		return t, false
	}
	number, err := strconv.Atoi(parts[1])
	is, bad := strconv.ParseUint(parts[3], 10, 8)
	t = thing{class: parts[0], number: number, is: marks(is)}
	t.at, ok = readSpots(parts[2])
	if ok = ok && err == nil && bad == nil && number > 0; !ok || len(parts) == 4 {
		return t, ok
	}
	var near, left bool
	t.near, near = readSpots(parts[4])
	t.left, left = readSpots(parts[5])
	return t, near && left
}

// check refuses indices and counts out of range.
func (w *world) check() error {
	held := 0
	for _, t := range w.Things {
		if n := len(t.at); n > 0 && (t.at[0] < inHand || t.at[n-1] >= len(w.Places)) {
			return fmt.Errorf("%s is at place %s of %d", t.name(), t.at, len(w.Places))
		}
		if t.at.has(inHand) {
			held++
		}
	}
	switch {
	case held > 1:
		return fmt.Errorf("the agent carries %d things", held)
	case w.game == nil && (w.You < -1 || w.You >= len(w.Places)):
		return fmt.Errorf("the agent is at place %d of %d", w.You, len(w.Places))
	case w.game != nil && (len(w.Places) != len(w.game.start.Places) || len(w.Things) != len(w.game.start.Things)):
		return fmt.Errorf("game %s has %d places and %d things, got %d and %d", w.Room, len(w.game.start.Places),
			len(w.game.start.Things), len(w.Places), len(w.Things))
	case w.Limit < 1 || w.Turn < 0 || w.Turn > w.Limit:
		return fmt.Errorf("turn %d of %d", w.Turn, w.Limit)
	}
	return nil
}

func (e *Household) readState(at env.State) (*world, error) {
	w, err := e.decode(at)
	if err != nil {
		return nil, fmt.Errorf("read a household state: %w", err)
	}
	return w, nil
}

// clone copies what an action can change.
func (w *world) clone() *world {
	next := *w
	next.Places, next.Things = slices.Clone(w.Places), slices.Clone(w.Things)
	return &next
}

// held returns the index of the thing that the agent carries, or −1.
func (w *world) held() int {
	return slices.IndexFunc(w.Things, func(t thing) bool { return t.at.has(inHand) })
}

// location returns the number of a place's location. In a generated room each place has its own.
func (w *world) location(place int) int {
	if w.game == nil {
		return place
	}
	return w.game.locations[place]
}

// here lists the places at the agent's location.
func (w *world) here() (places spots) {
	for i := range w.Places {
		if w.location(i) == w.You {
			places = append(places, i)
		}
	}
	return places
}

// isNear reports whether a thing is noted as being at the agent's location.
func (w *world) isNear(t thing) bool {
	if w.game == nil {
		return t.at.has(w.You)
	}
	return t.near.has(w.You)
}

// take puts a thing of a place into the hand.
func (w *world) take(thing, place int) {
	t := &w.Things[thing]
	t.at = t.at.without(place).with(inHand)
	if w.game != nil {
		t.near, t.left = t.near.without(w.You), t.left.with(place)
	}
}

// put puts the carried thing into a place.
func (w *world) put(thing, place int) {
	t := &w.Things[thing]
	t.at = t.at.without(inHand).with(place)
	if w.game != nil {
		t.near, t.left = t.near.with(w.You), t.left.without(place)
	}
}

// holds reports whether a place of the class can hold a thing of the class.
func (w *world) holds(place, thing string) bool {
	if w.game == nil {
		return holds(place, thing)
	}
	return w.game.holds[[2]string{place, thing}]
}

// holds reports whether a place of the class can hold a thing of the class in generated rooms.
func holds(place, thing string) bool {
	k, ok := kindNamed(thing)
	return ok && slices.Contains(k.places, place)
}
