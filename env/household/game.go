package household

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// welcome is the first line of a game.
const welcome = "-= Welcome to TextWorld, ALFRED! =-\n\n"

// game is one of ALFWorld's own games. It never changes.
type game struct {
	name      string // "train/TASK/TRIAL"
	digest    string // SHA-256 of the file
	words     words
	start     *world
	locations []int              // of each place
	holds     map[[2]string]bool // classes of places and of things that they can hold
	inside    map[int][]string   // names of what lies in a thing, which no command changes
}

// inside names what lies in a thing.
func (w *world) inside(thing int) []string {
	if w.game == nil {
		return nil
	}
	return w.game.inside[thing]
}

// first is the first view of a game: the whole room, unless the agent begins at a place.
func (w *world) first() string {
	if len(w.here()) > 0 {
		return w.look()
	}
	return w.middle()
}

// readGame reads the file of a game. It returns nil for a game that ALFWorld's package does not play, because the file
// does not say that it can be solved.
func readGame(name string, text []byte) (*game, error) {
	var f struct {
		Domain   string `json:"pddl_domain"`
		Grammar  string `json:"grammar"`
		Problem  string `json:"pddl_problem"`
		Solvable bool   `json:"solvable"`
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("is no game file: %w", err)
	}
	if !f.Solvable && f.Problem != "" {
		return nil, nil
	}
	if err := checkDomain(f.Domain); err != nil {
		return nil, fmt.Errorf("pddl_domain: %w", err)
	}
	words, task, err := readGrammar(f.Grammar)
	if err != nil {
		return nil, fmt.Errorf("grammar: %w", err)
	}
	g, err := readProblem(f.Problem)
	if err != nil {
		return nil, fmt.Errorf("pddl_problem: %w", err)
	}
	sum := sha256.Sum256(text)
	g.name, g.digest, g.words, g.start.Room, g.start.Goal.Text = name, hex.EncodeToString(sum[:]), words, name, task
	return g, nil
}

// The SHA-256 of ALFWorld's domain and grammar in the form that normal gives them. The package rewrites neither: every
// game file holds a copy of both.
const (
	domainDigest  = "c398bac7936b4387f52da0ff9ba6919b28acde22edfb26db4fe5d249aa1cd927"
	grammarDigest = "14c0515785e5a8cb88d23ab36cf84b3c406d0e9169d029b0a91f4638cf687493"
)

// normal joins the words of a text by single spaces, after replacements that take away in what versions differ.
func normal(text string, replacements ...string) (digest string) {
	text = strings.Join(strings.Fields(text), " ")
	sum := sha256.Sum256([]byte(strings.NewReplacer(replacements...).Replace(text)))
	return hex.EncodeToString(sum[:])
}

var comment = regexp.MustCompile(`;[^\n]*`)

// checkDomain refuses a domain that is not ALFWorld's. Version 0.4.2 adds the action help, and no longer cleans in a
// sink without a basin, which no room has.
func checkDomain(text string) error {
	got := normal(comment.ReplaceAllString(text, ""), " (receptacleType ?r SinkType)", "",
		" (:action help :parameters (?a - agent) :precondition () :effect (and (checked ?a) ) )", "")
	if got != domainDigest {
		return fmt.Errorf("is not the domain of ALFWorld's household tasks (SHA-256 %s)", got)
	}
	return nil
}

var (
	taskRule = regexp.MustCompile(`"Your task is to: ([^"\\{}#|\[\]]*)\."`)
	helpRule = regexp.MustCompile(`(?s)action help \{.*?"rhs": ("(?:[^"\\]|\\.)*").*?\n\}\s*`)
)

// readGrammar reads the sentence of the task and the words in which grammars differ, and refuses any other difference.
func readGrammar(text string) (w words, task string, err error) {
	found := taskRule.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		return w, "", fmt.Errorf(`has %d plain sentences "Your task is to: ….", want one`, len(found))
	}
	text = strings.Replace(text, found[0][1], "", 1)
	if help := helpRule.FindStringSubmatch(text); help != nil {
		if err := json.Unmarshal([]byte(help[1]), &w.help); err != nil {
			return w, "", fmt.Errorf("help: %w", err)
		}
		text = strings.Replace(text, help[0], "", 1)
	}
	const puts, says, loc = "put {o} in/on {r}", "You put the {o.name} in/on the {r.name}.", "{lend.name}"
	w.put, w.number = strings.Contains(text, puts), strings.Contains(text, loc)
	if w.put != strings.Contains(text, says) {
		return w, "", errors.New("its command and its answer for putting a thing down are of two versions")
	}
	got := normal(text, puts, "move {o} to {r}", says, "You move the {o.name} to the {r.name}.", loc, "{r.name}")
	if got != grammarDigest {
		return w, "", fmt.Errorf("is none of ALFWorld's grammars (SHA-256 %s)", got)
	}
	return w, found[0][1], nil
}
