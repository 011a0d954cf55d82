package math

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// functionsOfTask are the functions that a task brings.
func functionsOfTask(task env.Task) (out []env.Function, err error) {
	var q question
	if err = env.Decode([]byte(task.Spec), &q); err == nil {
		err = json.Unmarshal(q.Functions, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("read the functions of a task: %w", err)
	}
	return out, nil
}

// functionsOf reads functions as OpenAI and BFCL write them.
func functionsOf(text string) ([]env.Function, error) {
	var rows []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, fmt.Errorf("must be a list of functions, got %.40q", text)
	}
	out := make([]env.Function, len(rows))
	for i, row := range rows {
		if inner := row["function"]; inner != nil {
			row = nil
			_ = json.Unmarshal(inner, &row) // what is no object has no name
		}
		f, parameters := &out[i], map[string]any{}
		if json.Unmarshal(row["name"], &f.Name) != nil || f.Name == "" {
			return nil, fmt.Errorf("the function %d has no name", i+1)
		}
		f.Name = callable(f.Name)
		_ = json.Unmarshal(row["description"], &f.Description) // may be absent
		if raw := row["parameters"]; raw != nil && json.Unmarshal(raw, &parameters) != nil || parameters == nil {
			return nil, fmt.Errorf("%s: parameters must be an object", f.Name)
		}
		parameters["type"] = "object"
		schema, err := typed(parameters, "")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if f.Parameters, err = json.Marshal(schema); err != nil {
			return nil, err
		}
		switch {
		case f.Name == "python":
			return nil, fmt.Errorf("a function may not be called python, as the tool that runs programs is")
		case slices.ContainsFunc(out[:i], func(o env.Function) bool { return o.Name == f.Name }):
			return nil, fmt.Errorf("two functions are called %s", f.Name)
		}
	}
	return out, nil
}

// callable is a name that every form of calls can write.
func callable(name string) string { return strings.ReplaceAll(name, ".", "_") }

// types are the types of JSON schemas by the names that sets give them. A value of any is not bound.
var types = map[string]string{"string": "string", "str": "string", "integer": "integer", "int": "integer",
	"number": "number", "float": "number", "boolean": "boolean", "bool": "boolean", "array": "array", "list": "array",
	"tuple": "array", "object": "object", "dict": "object", "null": "null", "any": ""}

// typed replaces the types of a schema by those that JSON schemas have. at is the path of v.
func typed(v any, at string) (any, error) {
	fields, is := v.(map[string]any)
	if !is {
		return v, nil
	}
	for name, inner := range fields {
		of, is := inner.(string)
		to, known := types[of]
		var err error
		switch {
		case name != "type" || !is:
			fields[name], err = typed(inner, strings.TrimPrefix(at+"."+name, "."))
		case !known:
			err = fmt.Errorf("%s: the type %s is none of JSON's", strings.TrimPrefix(at+".type", "."), of)
		case to == "":
			delete(fields, name)
		default:
			fields[name] = to
		}
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}
