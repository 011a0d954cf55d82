package calc

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// python sends a request to one of testdata's programs and decodes its answer.
func python(t *testing.T, program string, request, answer any) {
	t.Helper()
	exe := pythontest.Need(t, "PYTHON")
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "testdata/"+program)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(body), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatal(err)
	}
}

// Interpret gives exactly Python's output for every program of the teacher that it knows. The programs that it does not
// know fail in Python too, except for a division by zero that wrongOrder causes.
func TestInterpretAgreesWithPython(t *testing.T) {
	all, _, _ := demonstrated(t, DefaultNoise(), 4000)
	var codes []string
	for _, steps := range all {
		for _, s := range steps {
			if s.IsCall() && !s.Broken {
				codes = append(codes, s.Code)
			}
		}
	}
	var answers []struct{ Failed, Stdout, Value string }
	python(t, "execute.py", codes, &answers)
	known := 0
	errors := map[string]int{}
	for i, code := range codes {
		want := answers[i]
		stdout, value, ok := Interpret(code)
		switch {
		case !ok && want.Failed == "":
			t.Errorf("%s runs in Python and is unknown here", code)
		case !ok:
			errors[want.Failed]++
		case want.Failed != "" || stdout != want.Stdout || value != want.Value:
			t.Errorf("%s: %q, %q here, %+v in Python", code, stdout, value, want)
		default:
			known++
		}
	}
	t.Logf("%d programs agree; Python fails the others with %v", known, errors)
	for _, kind := range []string{"NameError", "SyntaxError", "ZeroDivisionError"} {
		if errors[kind] == 0 {
			t.Errorf("no program fails with %s", kind)
		}
	}
	if known < 300 {
		t.Errorf("only %d programs were compared", known)
	}
}
