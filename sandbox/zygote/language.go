package zygote

import (
	"fmt"
	"os"
	"strings"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Interpreter runs code in a language other than Python: its command is started in the call's process with a file that
// holds the code. Only Python's verdicts tell syntax errors from other errors. In the tier "landlock" calls cannot
// start processes, so a shell has only its built-in commands.
type Interpreter struct {
	Name string   // the language, as in Call.Language
	Argv []string // the program, by its absolute path, and its arguments; the file's name is appended
	File string   // the code's file in the work folder, e.g. "main.sh"
}

// defaultInterpreters are the interpreters used when Options names none.
func defaultInterpreters() []Interpreter {
	return []Interpreter{{Name: sandbox.Bash, Argv: []string{"/bin/bash", "--noprofile", "--norc"}, File: "main.sh"}}
}

func (i *Interpreter) command() (argv []string, file string) {
	return append(append([]string{}, i.Argv...), i.File), i.File
}

// interpreter returns the interpreter of a language; nil for Python.
func (p plan) interpreter(language string) (*Interpreter, error) {
	if language == "" || language == sandbox.Python {
		return nil, nil
	}
	names := []string{sandbox.Python}
	for i := range p.others {
		if p.others[i].Name == language {
			return &p.others[i], nil
		}
		names = append(names, p.others[i].Name)
	}
	return nil, fmt.Errorf("%w: language %q is not one of %s", sandbox.ErrBadCall, language, strings.Join(names, ", "))
}

// present keeps the interpreters whose programs exist.
func present(all []Interpreter) (kept []Interpreter) {
	for _, i := range all {
		if info, err := os.Stat(i.Argv[0]); err == nil && !info.IsDir() {
			kept = append(kept, i)
		}
	}
	return kept
}
