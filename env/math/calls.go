package math

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
)

// calling is the name of the environment whose tasks bring functions, and are answered by calls of them.
const calling = "functions"

// functions is the field with a row's functions.
const functions = "functions"

// bringing are the shapes whose rows bring functions.
var bringing = []dataset.Shape{
	{Name: "BFCL", Needs: []string{"question.0 | spoken", "function.0.name"}, Columns: map[string]string{
		text: "question.0 | spoken", functions: "function | json", answer: "ground_truth | json"},
		Note: "answers from possible_answer/ next to the file; without them the irrelevance sets alone, where no " +
			"call is right. Not read: several turns, Java and JavaScript"},
}

// readCalls makes a row a question that calls answer.
func readCalls(r dataset.Row) (question, error) {
	q := question{ID: r.Values["id"], Text: r.Values[text], level: 1, set: r.Set}
	listed, err := functionsOf(r.Values[functions])
	if err != nil {
		return q, r.Fault("functions: %v", err)
	}
	gold, there := r.Values[answer]
	switch {
	case r.Cells["initial_config"] != nil:
		return q, r.Fault("is a task of several turns, which are not read")
	case !there && !strings.Contains(q.ID, "irrelevance"):
		return q, r.Fault("answer is missing: neither the row nor a file possible_answer/… has it")
	case !there:
		gold = "[]"
	}
	if q.Answer, err = goldCalls(gold, listed); err != nil {
		return q, r.Fault("answer: %v", err)
	}
	q.Functions, err = json.Marshal(listed)
	return q, err
}

// goldCalls is a gold as rl/words.Calls reads it. A call {name, arguments} is right with these arguments alone.
func goldCalls(text string, of []env.Function) (string, error) {
	var rows []map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&rows); err != nil {
		return "", fmt.Errorf("must be a list of calls, got %.40q", text)
	}
	for i, row := range rows {
		if name, is := row["name"].(string); is && row["arguments"] != nil {
			row = map[string]any{name: only(row["arguments"])}
		}
		rows[i] = map[string]any{}
		for name, arguments := range row {
			if err := checkGold(name, arguments, of); err != nil {
				return "", fmt.Errorf("call %d: %w", i+1, err)
			}
			rows[i][callable(name)] = arguments
		}
		if len(rows[i]) != 1 {
			return "", fmt.Errorf("call %d must name one function, got %d", i+1, len(rows[i]))
		}
	}
	out, err := json.Marshal(rows)
	return string(out), err
}

func checkGold(name string, arguments any, of []env.Function) error {
	if !slices.ContainsFunc(of, func(f env.Function) bool { return f.Name == callable(name) }) {
		return fmt.Errorf("there is no function %s", name)
	}
	values, is := arguments.(map[string]any)
	if !is {
		return fmt.Errorf("%s: the arguments must be an object", name)
	}
	for argument, accepted := range values {
		if _, is := accepted.([]any); !is {
			return fmt.Errorf("%s: %s must be a list of the values that are right", name, argument)
		}
	}
	return nil
}

// only makes each field of each object a list of the one value that is right.
func only(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			out[name] = []any{only(inner)}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = only(item)
		}
		return out
	}
	return v
}
