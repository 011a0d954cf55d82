package scheduler

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/golden"
)

var update = flag.Bool("update", false, "write what the core decides into the scripts of testdata")

// The files of testdata are scripts: comments, one line that makes a core, and lines of a time and the events of that
// moment. The lines that begin with → are what the core decides; the test compares them, or writes them with -update.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Base(file), play(t, string(data)), *update)
		})
	}
}

// play runs a script and returns it with the decisions.
func play(t *testing.T, script string) string {
	var out strings.Builder
	var c *Core
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "→") {
			continue
		}
		out.WriteString(line + "\n")
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
			continue
		case words[0] == "core":
			c = scripted(t, words[1:])
			continue
		case words[0] == "stats":
			fmt.Fprintf(&out, "→ %+v\n", c.Stats())
			continue
		}
		at, err := strconv.ParseFloat(words[0], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		actions, err := c.Step(at, parse(t, strings.TrimSpace(line[len(words[0]):]))...)
		for _, a := range actions {
			fmt.Fprintf(&out, "→ %s\n", a)
		}
		if err != nil {
			fmt.Fprintf(&out, "→ error: %v\n", err)
		}
	}
	return out.String()
}

// fields reads key=value pairs of whole numbers.
func fields(t *testing.T, words []string) map[string]int {
	out := map[string]int{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		out[key] = n
	}
	return out
}

// scripted makes the core of a line such as: core worst park=1 engines=100,100/50. The second engine takes episodes of
// at most 50 tokens.
func scripted(t *testing.T, words []string) *Core {
	s := Settings{Reserve: Reserve(words[0])}
	var engines []Engine
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "engines":
			for _, n := range strings.Split(value, ",") {
				e := Engine{Prefill: 10}
				n, longest, _ := strings.Cut(n, "/")
				if _, err := fmt.Sscan(n, &e.Capacity); err != nil {
					t.Fatal(err)
				}
				if _, err := fmt.Sscan(longest, &e.Longest); longest != "" && err != nil {
					t.Fatal(err)
				}
				engines = append(engines, e)
			}
		case "hold":
			s.Hold = true
		case "evaluation":
			if _, err := fmt.Sscan(value, &s.Weights[Evaluation]); err != nil {
				t.Fatal(err)
			}
		default:
			n := fields(t, []string{w})
			s.Park = max(s.Park, float64(n["park"]))
			s.Length = max(s.Length, n["length"])
		}
	}
	c, err := New(s, engines)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parse reads the events of a line, separated by semicolons.
func parse(t *testing.T, text string) (events []Event) {
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		kind := -1
		for k, name := range kindNames {
			if name == strings.ReplaceAll(words[0], "-", " ") {
				kind = k
			}
		}
		if kind < 0 {
			t.Fatalf("unknown event %q", words[0])
		}
		f := fields(t, words[1:])
		events = append(events, Event{
			Kind:    Kind(kind),
			Episode: f["episode"],
			Engine:  f["engine"],
			Attempt: max(
				f["attempt"],
				1,
			),
			Tokens:   f["tokens"],
			Held:     f["held"],
			Most:     f["tighten"],
			Cached:   f["cached"],
			Version:  f["version"],
			PerToken: float64(f["per-token"]),
			Spec: Spec{Group: f["group"], Class: Class(f["class"]), Prompt: f["prompt"], Most: f["most"],
				Stretch: f["stretch"], Cached: f["has"], Home: f["home"]},
			Rows: f["rows"],
		})
	}
	return events
}
