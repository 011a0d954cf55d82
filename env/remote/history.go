package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/env"
)

// ErrDiffers is the error of an episode that showed something else when its actions were repeated.
var ErrDiffers = errors.New("the environment did not repeat its episode")

// history is the state of an episode.
type history struct {
	Seed    int      `json:"seed"`
	Actions []string `json:"actions"`
	// Seen has a digest of the first observation, and of the result of each action.
	Seen []string `json:"seen"`
	Paid float64  `json:"paid"` // the rewards so far
	Done bool     `json:"done"`
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
	h.Done = got.Done
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
	sum := sha256.Sum256(fmt.Appendf(nil, "%s%g %t %s %s", refused, r.Reward, r.Done, success, r.Text))
	return hex.EncodeToString(sum[:16])
}
