package scheduler

import (
	"cmp"
	"fmt"
	"strings"
)

// Kind is what has happened.
type Kind int

// The kinds of events, in the order in which simultaneous ones are applied.
const (
	// Submit adds the episode that Event.Spec describes.
	Submit Kind = iota
	// Rate reports how fast an engine generates for one row: PerToken seconds for each token; 0 = not known. Engines
	// that can be asked report it every few seconds, so that a straggler is noticed before its turns end.
	Rate
	// StretchEnded reports that an engine has stopped a turn that is not complete, after a stretch of Tokens. The
	// episode holds Held tokens, all of them cached.
	StretchEnded
	// TurnEnded reports a turn that ended with tool calls, which have been dispatched: Tokens were generated in the
	// turn, and the episode holds Held tokens. Most, if it is not 0, lowers what the episode can come to hold.
	TurnEnded
	// Ended reports the end of an episode's last turn.
	Ended
	// Evicted reports that an engine has dropped a running episode to make room. Held tokens are kept as text; their
	// cache is lost.
	Evicted
	// Failed reports that an engine has failed on an episode's running turn, and may serve others. Held tokens are kept
	// as text. The episode goes to another engine as long as there is one that could hold it and has not failed on it.
	Failed
	// Withdrawn takes an episode out, whatever it does, and forgets it. No event about it may follow. Callers that go
	// on for long withdraw the episodes that have ended, too.
	Withdrawn
	// Returned reports that the tools of the attempt have answered: the episode's next prefix is Held tokens, of which
	// Cached are still in its home's cache.
	Returned
	// Loaded reports that an engine has the weights of Version.
	Loaded
	// Limit sets how many episodes, Rows, an engine takes at once from now on. With 0 it takes none.
	Limit
	// Lost reports that an engine is gone, with every cache and every unfinished turn.
	Lost
	// Joined reports that an engine is back, empty, with the weights of Version. If As is not nil, the engine is now as
	// it says.
	Joined
	// Publish asks all engines to load the weights of Version.
	Publish
)

var kindNames = [...]string{
	"submit",
	"rate",
	"stretch ended",
	"turn ended",
	"ended",
	"evicted",
	"failed",
	"withdrawn",
	"returned",
	"loaded",
	"limit",
	"lost",
	"joined",
	"publish",
}

// String names the kind.
func (k Kind) String() string { return kindNames[k] }

// Spec describes an episode.
type Spec struct {
	Group  int
	Class  Class
	Prompt int // tokens of the first prefix
	Most   int // tokens that the episode can come to hold
	// Stretch is how many tokens, at most, the engine generates and the tools answer before the scheduler is asked
	// again; 0 = until the episode's end.
	Stretch int
	// Cached says how many tokens of the prompt are in the cache of the engine Home: the episode continues with what
	// another one has held there. 0 = none, or not known.
	Cached, Home int
}

// Event is something that has happened. Kind says which fields count.
type Event struct {
	Kind     Kind
	Episode  int // any number that no other episode has
	Engine   int // index into the engines
	Attempt  int // of Start
	Tokens   int
	Held     int
	Most     int
	Cached   int
	Version  int
	Rows     int
	PerToken float64
	Prefill  float64 // with Rate: tokens of a prefix that the engine computes a second; 0 = as before
	Spec     Spec
	As       *Engine
}

// compare orders simultaneous events.
func compare(a, b Event) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Episode, b.Episode),
		cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Held, b.Held), cmp.Compare(a.Version, b.Version),
		cmp.Compare(a.PerToken, b.PerToken))
}

// Do is what a decision asks for.
type Do int

// The decisions.
const (
	// Start generates the episode's next turn on Engine. Cached tokens of its prefix were in that engine's cache when
	// this was last known; the others have to be computed.
	Start Do = iota
	// Park frees the room of an episode whose tool is slow: the engine may drop its cache when it needs the memory.
	Park
	// Cancel stops the episode's running turn. Its finished turns count; the turn starts again elsewhere.
	Cancel
	// Load loads the weights of Version on Engine, which is empty. The engine's caches are void.
	Load
)

var doNames = [...]string{"start", "park", "cancel", "load"}

// String names the decision.
func (d Do) String() string { return doNames[d] }

// Action is a decision. The caller carries out the actions of one Step in order.
type Action struct {
	Do      Do
	Episode int
	Engine  int
	Attempt int // for Start, to be given back with the events of this turn
	Cached  int
	Version int
}

// String writes the action for logs and golden files.
func (a Action) String() string {
	var b strings.Builder
	b.WriteString(a.Do.String())
	if a.Do == Load {
		fmt.Fprintf(&b, " version %d on engine %d", a.Version, a.Engine)
		return b.String()
	}
	fmt.Fprintf(&b, " episode %d on engine %d", a.Episode, a.Engine)
	if a.Do == Start {
		fmt.Fprintf(&b, ", attempt %d, %d cached", a.Attempt, a.Cached)
	}
	return b.String()
}

// Stats count what a core has decided and been told.
type Stats struct {
	Ended    int // episodes
	Starts   int // attempts at turns
	Parked   int
	Moved    int // turns that did not start on the episode's home
	Evicted  int
	Rescued  int // turns taken off stragglers
	Repeated int // turns to be generated again: of lost engines, engines that failed, and stragglers
	Late     int // events about attempts that had been given up
	Mixed    int // turns that began under other weights than their episode
}
