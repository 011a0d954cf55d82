package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// ErrDiffers is the error of an episode that showed something else when its actions were repeated.
var ErrDiffers = errors.New("the environment did not repeat its episode")

// opening is the beginning of an episode: a seed, which counts within the split if the other side knows splits.
type opening struct {
	Seed  int       `json:"seed"`
	Split env.Split `json:"split,omitempty"` // "" if the other side knows none
}

func (o opening) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s seed %d", o.Split, o.Seed))
}

// history is the state of an episode.
type history struct {
	opening
	Actions []string `json:"actions"`
	// Seen has a digest of the first observation, and of the result of each action.
	Seen []string `json:"seen"`
	Paid float64  `json:"paid"` // the rewards so far
	Done bool     `json:"done"`
	// Admissible are the actions that the other side accepts now; nil if it does not list them.
	Admissible []string `json:"admissible,omitempty"`
	// Type and Level are the task's, and Score says how far the episode came, as far as the other side says so.
	Type  string   `json:"type,omitempty"`
	Level int      `json:"level,omitempty"`
	Score *float64 `json:"score,omitempty"`
}

// begun returns the history of an episode that has just begun.
func begun(task opening, first Reply) history {
	return history{opening: task, Actions: []string{}, Seen: []string{first.digest()}, Type: first.Type,
		Level: first.Level, Admissible: first.Admissible, Score: first.Score}
}

// state encodes a history.
func (h history) state() (env.State, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode an episode's state: %w", err)
	}
	return text, nil
}

// historyOf reads a state that an environment of this package has made.
func historyOf(s env.State) (history, error) {
	var h history
	if err := env.Decode(s, &h); err != nil {
		return h, fmt.Errorf("read an episode's state: %w", err)
	}
	if len(h.Seen) != len(h.Actions)+1 || h.Seed < 0 {
		return h, fmt.Errorf("read an episode's state: it has %d actions and %d observations", len(h.Actions),
			len(h.Seen))
	}
	return h, nil
}

// then returns the history after one more action.
func (h history) then(action string, got Reply) history {
	h.Actions = append(h.Actions[:len(h.Actions):len(h.Actions)], action)
	h.Seen = append(h.Seen[:len(h.Seen):len(h.Seen)], got.digest())
	h.Paid += got.Reward
	h.Done, h.Admissible = got.Done, got.Admissible
	if got.Score != nil {
		h.Score = got.Score
	}
	return h
}

// digest identifies a reply by all that an episode depends on.
func (r Reply) digest() string {
	success := "null"
	if r.Success != nil {
		success = fmt.Sprint(*r.Success)
	}
	refused := ""
	if r.Refused { // no history holds such a reply, so a repeated action that is refused differs
		refused = "refused "
	}
	all := fmt.Appendf(nil, "%s%g %t %s %s", refused, r.Reward, r.Done, success, r.Text)
	if r.Admissible != nil {
		all = fmt.Appendf(all, "\x00%q", r.Admissible)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}
