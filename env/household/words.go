package household

import "strconv"

// words are what differs between the versions of ALFWorld's grammar. Zero values mean version 0.4.2.
type words struct {
	put    bool // "put mug 1 in/on desk 1", instead of "move mug 1 to desk 1"
	silent bool // going to a place shows only what is there
	number bool // going to a place names the number of its location
	help   string
}

// helpText lists the commands in generated rooms. The words are not ALFWorld's.
const helpText = "Commands: look; inventory; go to PLACE; open PLACE; close PLACE; take THING from PLACE; " +
	"move THING to PLACE; examine PLACE or THING; use THING; clean THING with PLACE; heat THING with PLACE; " +
	"cool THING with PLACE; slice THING with THING."

// words returns the words of the world's game or of generated rooms.
func (e *Household) words(w *world) words {
	if w.game != nil {
		return w.game.words
	}
	return words{put: e.settings.Put, silent: e.settings.Put, help: helpText}
}

// move says that a thing is put down.
func (w words) move(thing, place string) string {
	if w.put {
		return "put " + thing + " in/on " + place
	}
	return "move " + thing + " to " + place
}

// arrival is what precedes the view of a place when the agent goes there.
func (w words) arrival(place string, location int) string {
	switch {
	case w.silent:
		return ""
	case w.number:
		place = "loc " + strconv.Itoa(location)
	}
	return "You arrive at " + place + ". "
}
