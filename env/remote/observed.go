package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// errAway says that the server cannot be reached now, or has no room.
var errAway = errors.New("the OpenEnv server is away")

// envelope is a message of a server.
type envelope struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// observed is the data of an observation.
type observed struct {
	Observation map[string]any  `json:"observation"`
	Reward      json.RawMessage `json:"reward"`
	Done        *bool           `json:"done"`
}

// fault is the data of an error.
type fault struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	Errors  []struct {
		Place []any  `json:"loc"`
		Text  string `json:"msg"`
	} `json:"errors"`
}

// reply reads a server's message. What is not of the protocol's form is an error.
func (p *openEnvPort) reply(data []byte, step bool) (Reply, error) {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return Reply{}, fmt.Errorf("the OpenEnv server sent no JSON: %w", badinput.JSON(err))
	}
	switch e.Type {
	case "observation":
		return p.observation(e.Data, step)
	case "error":
		return refusal(e.Data, step)
	}
	return Reply{}, fmt.Errorf("the OpenEnv server sent a message of type %s, want observation", short(e.Type))
}

// refusal reads an error. A step that the server could not read is refused: the policy's text is the only part of it
// that varies.
func refusal(data []byte, step bool) (Reply, error) {
	var f fault
	if err := json.Unmarshal(data, &f); err != nil {
		return Reply{}, fmt.Errorf("the OpenEnv server sent an error without its form: %w", badinput.JSON(err))
	}
	switch {
	case f.Code == "CAPACITY_REACHED":
		return Reply{}, fmt.Errorf("%w: %s", errAway, short(f.Message))
	case f.Code == "VALIDATION_ERROR" && step:
		text := "The environment refused the action."
		for _, e := range f.Errors {
			if where := strings.Trim(fmt.Sprint(e.Place), "[]"); where != "" && e.Text != "" {
				text += fmt.Sprintf(" %s: %s.", where, strings.TrimRight(e.Text, "."))
			}
		}
		return Reply{Text: short(text), Refused: true}, nil
	}
	return Reply{}, fmt.Errorf("the OpenEnv server reports %s: %s", short(f.Code), short(f.Message))
}

// observation reads an observation.
func (p *openEnvPort) observation(data []byte, step bool) (Reply, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var o observed
	if err := d.Decode(&o); err != nil {
		return Reply{}, fmt.Errorf("read the OpenEnv server's observation: %w", badinput.JSON(err))
	}
	if o.Observation == nil || o.Done == nil {
		return Reply{}, errors.New("the OpenEnv server's observation lacks observation or done")
	}
	out := Reply{Done: *o.Done}
	var err error
	if step {
		if out.Reward, err = p.reward(o.Reward); err != nil {
			return out, err
		}
	}
	shown, err := field(o.Observation, p.shown)
	if err != nil {
		return out, err
	}
	if out.Text, err = textOf(shown); err != nil {
		return out, err
	}
	if out.Done && p.success != nil {
		said, err := field(o.Observation, p.success)
		if err != nil {
			return out, err
		}
		success, ok := said.(bool)
		if !ok {
			return out, fmt.Errorf("success: the observation's field %s is no truth value",
				strings.Join(p.success, "."))
		}
		out.Success = &success
	}
	return out, nil
}

// reward reads a step's reward.
func (p *openEnvPort) reward(text json.RawMessage) (float64, error) {
	switch string(text) {
	case "", "null":
		if p.nullIsZero {
			return 0, nil
		}
		return 0, errors.New("the OpenEnv server sent no reward (or NaN); null_reward: zero counts none as 0")
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	var x float64
	if err := json.Unmarshal(text, &x); err != nil {
		return 0, fmt.Errorf("the OpenEnv server's reward is %s, want a finite number", short(string(text)))
	}
	return x, nil
}

// field finds a field of a field.
func field(observation map[string]any, path []string) (any, error) {
	var value any = observation
	for i, name := range path {
		object, _ := value.(map[string]any)
		next, ok := object[name]
		if !ok {
			return nil, fmt.Errorf("the OpenEnv server's observation has no field %s", strings.Join(path[:i+1], "."))
		}
		value = next
	}
	return value, nil
}

// textOf renders a value: a text as it is, rows of a table as lines, anything else as JSON with sorted names.
func textOf(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case []any:
		if lines, ok := table(v); ok {
			return lines, nil
		}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", fmt.Errorf("write an observation as JSON: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// table renders rows of plain values as lines. ok is false if a value is no such table.
func table(rows []any) (text string, ok bool) {
	lines := make([]string, len(rows))
	for i, r := range rows {
		row, isRow := r.([]any)
		if !isRow {
			return "", false
		}
		words := make([]string, len(row))
		for j, x := range row {
			switch x.(type) {
			case map[string]any, []any, nil:
				return "", false
			}
			words[j] = fmt.Sprint(x)
		}
		lines[i] = strings.Join(words, " ")
	}
	return strings.Join(lines, "\n"), len(rows) > 0
}

// shortBytes bounds what an error or a refusal says in a server's words.
const shortBytes = 300

// short cuts a server's words.
func short(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= shortBytes {
		return text
	}
	cut := shortBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
