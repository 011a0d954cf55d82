package household

import (
	"encoding/json"
	"errors"
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
	at     int // index of the place, or inHand
	is     marks
	can    marks
}

func (t thing) name() string { return t.class + " " + strconv.Itoa(t.number) }

// world is a task, or the state of an episode of it.
type world struct {
	Room   string // name of the layout
	Goal   goal
	Places []place // by class, then by number
	Things []thing // by class, then by number
	You    int     // index of the place where the agent is; −1 in the middle of the room
	Turn   int     // turns taken
	Limit  int
	Ended  bool
}

// written is a world in JSON. Equal worlds have equal bytes.
type written struct {
	Room   string `json:"room"`
	Goal   goal   `json:"goal"`
	Places string `json:"places"` // "cabinet 1 c, desk 1 -": name and door
	Things string `json:"things"` // "mug 1 @3 5, pen 1 @-1 0": name, index of the place, marks
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
		things[i] = t.name() + " @" + strconv.Itoa(t.at) + " " + strconv.Itoa(int(t.is))
	}
	text, err := json.Marshal(written{Room: w.Room, Goal: w.Goal, Places: strings.Join(places, ", "),
		Things: strings.Join(things, ", "), You: w.You, Turn: w.Turn, Limit: w.Limit, Ended: w.Ended})
	if err != nil {
		panic(err) // numbers and text always have a JSON form
	}
	return text
}

// decode reads a world and refuses one that no episode can be in.
func decode(text []byte) (*world, error) {
	var f written
	if err := env.Decode(text, &f); err != nil {
		return nil, err
	}
	w := &world{Room: f.Room, Goal: f.Goal, You: f.You, Turn: f.Turn, Limit: f.Limit, Ended: f.Ended}
	if err := f.Goal.check(); err != nil {
		return nil, err
	}
	for _, text := range strings.Split(f.Places, ", ") {
		p, err := readPlace(text)
		if err != nil {
			return nil, err
		}
		w.Places = append(w.Places, p)
	}
	if f.Things != "" {
		for _, text := range strings.Split(f.Things, ", ") {
			t, err := readThing(text)
			if err != nil {
				return nil, err
			}
			w.Things = append(w.Things, t)
		}
	}
	return w, w.check()
}

func readPlace(text string) (p place, err error) {
	parts := strings.Split(text, " ")
	if len(parts) == 3 && slices.Contains(placeClasses, parts[0]) && len(parts[2]) == 1 &&
		strings.Contains("-co", parts[2]) {
		p = place{class: parts[0], door: parts[2][0]}
		p.number, err = strconv.Atoi(parts[1])
	}
	if err != nil || p.number < 1 {
		return p, fmt.Errorf("%q is no place", text)
	}
	return p, nil
}

func readThing(text string) (t thing, err error) {
	parts := strings.Split(text, " ")
	if len(parts) == 4 && strings.HasPrefix(parts[2], "@") {
		k, _ := kindNamed(parts[0])
		t = thing{class: k.name, can: k.can}
		var is int
		t.number, err = strconv.Atoi(parts[1])
		at, bad := strconv.Atoi(parts[2][1:])
		is, worse := strconv.Atoi(parts[3])
		if err = errors.Join(err, bad, worse); is < 0 || is > 255 {
			err = fmt.Errorf("%d are no marks", is)
		}
		t.at, t.is = at, marks(is)
	}
	if err != nil || t.class == "" || t.number < 1 {
		return t, fmt.Errorf("%q is no thing", text)
	}
	return t, nil
}

// check refuses indices and counts out of range.
func (w *world) check() error {
	held := 0
	for _, t := range w.Things {
		if t.at < inHand || t.at >= len(w.Places) {
			return fmt.Errorf("%s is at place %d of %d", t.name(), t.at, len(w.Places))
		}
		if t.at == inHand {
			held++
		}
	}
	switch {
	case held > 1:
		return fmt.Errorf("the agent carries %d things", held)
	case w.You < -1 || w.You >= len(w.Places):
		return fmt.Errorf("the agent is at place %d of %d", w.You, len(w.Places))
	case w.Limit < 1 || w.Turn < 0 || w.Turn > w.Limit:
		return fmt.Errorf("turn %d of %d", w.Turn, w.Limit)
	}
	return nil
}

func readState(at env.State) (*world, error) {
	w, err := decode(at)
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
	return slices.IndexFunc(w.Things, func(t thing) bool { return t.at == inHand })
}

// holds reports whether a place of the class can hold a thing of the class.
func holds(place, thing string) bool {
	k, ok := kindNamed(thing)
	return ok && slices.Contains(k.places, place)
}
