package env

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Declaration tells the rest of the program everything that it needs to know about an environment. Each environment
// package has one, and package env/environments lists it.
type Declaration struct {
	Name   string // name in recipes
	Doc    string // one line, without a full stop
	Source string // source of the task; "" if this program makes the task
	// Imported means that the environment's trajectories are imported: nothing is sampled, trained or evaluated.
	Imported bool
	// Mixed means that the environment consists of other environments, which the recipe names; see package mix.
	Mixed bool
	// Interactive means that each response is an action, and that the environment's transitions are committed turn by
	// turn.
	Interactive bool
	// Sandboxed means that the trajectories' tool calls run in the sandbox.
	Sandboxed bool
	// Tools are the tools that policies answer questions with, if the recipe names none; nil means python if the
	// environment is Sandboxed, and an empty list that there is none unless the recipe names python. MoreTools are
	// others that a recipe can name.
	Tools, MoreTools []string
	// Golds means that Task.Answer holds right answers as JoinGolds writes them, and that answers are compared with
	// them by words (exact match, F1).
	Golds bool
	// Functions returns the functions that a task brings. Nothing runs them: the calls of the first response are the
	// answer. It is nil if tasks bring none.
	Functions func(task Task) ([]Function, error)
	// Listed means that the environment is a Lister, so that a recipe can filter its training tasks.
	Listed bool
	// Demonstrated means that a script can write demonstrations for a warm start: a teacher, or the expert of an
	// interactive environment.
	Demonstrated bool
	// Undemonstrated says why no script can demonstrate the tasks with these settings, although the environment is
	// Demonstrated; "" = one can. It is nil if every recipe's tasks can be demonstrated.
	Undemonstrated func(s Settings) string
	// Protocol is the prompt format of recipes that do not name another one.
	Protocol string
	// Rewards are the names of the rewards that can score the environment's trajectories.
	Rewards []string
	// Strings returns fixed texts of the tasks and actions. Each becomes one token of a tokenizer that this program
	// makes.
	Strings func() []string
	// More returns fixed texts that only some settings have, after those of Strings; nil if there are none.
	More func(s Settings) []string
	// Lay lays a text of the environment out for a person to read, in lines: an observation, or the result of the named
	// tool ("" for an observation). Policies and the record have the text as it is. Lay is nil if no text needs laying
	// out. It accepts any text, and the caller escapes what it returns.
	Lay func(tool, text string) string
	// Goal finds what a task asks for in the text of its prompt, for a person to read. Goal is nil if the first
	// observation says it. It accepts any text; "" = not found.
	Goal func(prompt string) string
	// Settings are the environment's fields in a recipe (environment.settings); see SettingsOf.
	Settings []Setting
	// Pin completes the settings of a new recipe that name files: it reads the files and sets their digest, so that the
	// run's recipe says from which files its tasks come. It is an error if the recipe gives another digest. The recipe
	// of a record is not pinned again, so that reading a record needs no such file. Pin is nil if no setting names one.
	Pin func(s Settings) error
	// Rows calls each for every row of a file of tasks, as an environment with these options would read it, and returns
	// the file's digest. It is nil if no setting names files of rows.
	Rows func(ctx context.Context, o Options, file string, each func(FileRow)) (digest string, err error)
	// Wants says what a recipe must set before a run can use the environment, such as the file that holds its tasks; ""
	// = nothing. A preset may leave that open, so a recipe without it is valid. Wants is nil if every recipe can run.
	Wants func(s Settings) string
	// World says for a person which world the settings choose: released files, or one that stands in for them. It is
	// nil if there is one world. It reads no file.
	World func(s Settings) string
	// Starts says which program of the user's own workers start with these settings; "" = none. Starts is nil if no
	// setting names one.
	Starts func(s Settings) string
	// Summary is the maximum of tokens of the summary that the tool browse shows in the place of a document with these
	// settings; 0 = it shows the document. It is nil if no setting asks for summaries.
	Summary func(s Settings) int
	// Open makes the environment; nil if the environment is imported.
	Open func(o Options) (Environment, error)
}

// UsualTools lists the tools with which policies answer the environment's questions if the recipe names none.
func (d Declaration) UsualTools() []string {
	if len(d.Tools) == 0 && d.Sandboxed {
		return []string{"python"}
	}
	return d.Tools
}

// AllTools lists the tools that a recipe of the environment can name, those that it has by default first.
func (d Declaration) AllTools() []string { return slices.Concat(d.UsualTools(), d.MoreTools) }

// FileRow is one row of a file of tasks.
type FileRow struct {
	Number int
	Shape  string         // name of the recognised shape of the file; "" = none
	Cells  map[string]any // values by column: text, json.RawMessage, or an error
	Task   Task
	Fault  error // why a run would refuse the row; nil = it would not
}

// Options holds a recipe's settings of its environment.
type Options struct {
	Settings Settings
	MaxTurns int // maximum responses of one trajectory, from 1; ends an interactive episode
	// LevelShares is the share of each level among training tasks, for environments that can weight their levels.
	LevelShares map[string]float64
	// Fetch opens the file at a remote address that a setting names. It is nil where no task is drawn.
	Fetch func(ctx context.Context, address string) (io.ReadCloser, error)
}

// Settings maps the names of declared settings to their values: numbers, texts and truth values.
type Settings map[string]any

// Setting is one field of an environment's settings.
type Setting struct {
	Name, Doc string
	Kind      reflect.Kind // Int, Float64, String or Bool
	Default   string       // as YAML
	Min, Max  *float64     // inclusive
	Enum      []string
	// Quiet means that a recipe does not record the setting while it has its default, which is the zero value of its
	// kind. A setting that is added to an environment is quiet, so that earlier recipes keep their digests.
	Quiet bool
}

// SettingsOf reads the settings that an environment declares as a struct; the fields of an embedded struct are settings
// like the others. The tag json is the field's name, doc its
// description, and default its default value in YAML. The tags min, max and enum (names separated by |) bound the
// value, and quiet:"true" makes the setting quiet. A malformed tag panics, so every test finds it.
func SettingsOf[T any]() []Setting {
	var out []Setting
	for f := range fieldsOf(reflect.TypeFor[T]()) {
		s := Setting{Name: f.Tag.Get("json"), Doc: f.Tag.Get("doc"), Default: f.Tag.Get("default"), Kind: f.Type.Kind(),
			Min: bound(f, "min"), Max: bound(f, "max"), Quiet: f.Tag.Get("quiet") == "true"}
		if enum := f.Tag.Get("enum"); enum != "" {
			s.Enum = strings.Split(enum, "|")
		}
		switch s.Kind {
		case reflect.Int, reflect.Float64, reflect.String, reflect.Bool:
		default:
			panic(fmt.Sprintf("env: setting %s is %s, want a whole number, a number, text or a truth value", s.Name,
				f.Type))
		}
		if s.Quiet && !slices.Contains([]string{`""`, "0", "false"}, s.Default) {
			panic(fmt.Sprintf("env: setting %s is quiet, so its default must be its zero value", s.Name))
		}
		if s.Name == "" || s.Doc == "" || s.Default == "" {
			panic(fmt.Sprintf("env: setting %s wants the tags json, doc and default", f.Name))
		}
		out = append(out, s)
	}
	return out
}

func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if !f.Anonymous && !yield(f) {
				return
			}
		}
	}
}

func bound(f reflect.StructField, tag string) *float64 {
	text, ok := f.Tag.Lookup(tag)
	if !ok {
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("env: setting %s: tag %s: %v", f.Name, tag, err))
	}
	return &x
}

// Read decodes settings into the struct that declares them. An unknown name is an error.
func Read[T any](s Settings) (T, error) {
	var out T
	text, err := json.Marshal(s)
	if err != nil {
		return out, fmt.Errorf("read environment settings: %w", err)
	}
	if err := Decode(text, &out); err != nil {
		return out, fmt.Errorf("read environment settings: %w", err)
	}
	return out, nil
}

// Names splits a setting that is a list of names.
func Names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
