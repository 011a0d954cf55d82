package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
)

// Call is one call of a tool.
type Call struct {
	Key       Key
	Tool      string          // Spec.Name of the tool
	Name      string          // the name that the policy wrote: Tool or one of its aliases
	Arguments json.RawMessage // as the policy wrote them; not checked yet
	// Past holds the calls that the episode made of this tool in earlier turns, oldest first, if the tool is stateful.
	// All calls of an episode in one batch have the same Past.
	Past []Ran
	// Question is the task of the episode, for tools whose result depends on it too.
	Question string
	Trace    string // identifies the call in logs; no result depends on it
}

// Ran is a call that has run, with its committed result. Its Timing is zero.
type Ran struct {
	Call   Call
	Result Result
}

// Scope is what an episode belongs to.
type Scope struct {
	Run        string // id of the run; "" outside of runs
	Generation int    // generation of the step: another rollout of the same step is another generation
	Pass       string // names a part of an evaluation; "" in a rollout
}

// Key is the place of a call in its run. It is the call's idempotency key: every attempt of every worker derives the
// same key for the same call, and no other call has it.
type Key struct {
	Scope
	Label               string // what the episode is for: a rollout, an evaluation, a demonstration
	Step, Group, Sample int    // the episode
	Turn, Call          int    // the response, and the call's position among its calls
}

// Episode identifies the episode, for tools that keep state for it.
func (k Key) Episode() string { return url.PathEscape(k.Run) + "/" + k.episode() }

func (k Key) episode() string {
	pass := ""
	if k.Pass != "" {
		pass = "pass=" + url.PathEscape(k.Pass) + "/"
	}
	return fmt.Sprintf("%s/%sstep=%d/gen=%d/group=%d/sample=%d", url.PathEscape(k.Label), pass, k.Step, k.Generation,
		k.Group, k.Sample)
}

// InRun renders the key without the run.
func (k Key) InRun() string { return fmt.Sprintf("%s/turn=%d/call=%d", k.episode(), k.Turn, k.Call) }

// String renders the key, as a tool sends it to a service.
func (k Key) String() string { return url.PathEscape(k.Run) + "/" + k.InRun() }

// Digest is the SHA-256 of what the policy asked for: the tool and the arguments, without the key.
func (c Call) Digest() string {
	h := sha256.New()
	for _, s := range []string{c.Tool, c.Name, string(c.Arguments)} {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}
