package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// own is a folder of the user's code with functions that are called in it.
type own struct {
	*testing.T
	folder    string
	functions Functions
	settings  FunctionSettings
}

func owned(t *testing.T) *own {
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	o := &own{T: t, folder: t.TempDir()}
	o.settings = FunctionSettings{Module: "graded:score", Path: o.folder, Seconds: 60}
	t.Cleanup(func() {
		for _, fn := range o.functions.all {
			if fn.held {
				fn.now.kill(errIdle)
			}
		}
	})
	return o
}

// write writes a file with the modification time of the one before, so that only its bytes tell them apart.
func (o *own) write(name, text string) {
	path := filepath.Join(o.folder, name)
	require.NoError(o, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(o, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(o, os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)))
}

func (o *own) score() (float64, error) {
	got, err := o.functions.Score(o.Context(), o.settings, []map[string]any{{}}, func(int, int) {})
	if err != nil {
		return 0, err
	}
	return got[0].Score, got[0].Broken
}

func (o *own) scores(want float64) {
	o.Helper()
	got, err := o.score()
	require.NoError(o, err)
	require.Equal(o, want, got)
}

// An edited file is loaded again, also one that is imported by the module or only in a call, and compiled files from
// before the edit are not used.
func TestEditedCodeIsLoaded(t *testing.T) {
	o := owned(t)
	o.write("graded.py", "import part\ndef score(t):\n    from lib import late\n    return part.X + late.X\n")
	o.write("part.py", "X = 1\n")
	o.write("lib/late.py", "X = 10\n")
	t.Setenv("PYTHONDONTWRITEBYTECODE", "") // empty is as good as unset
	compiled := exec.Command(os.Getenv(python.Variable), "-c", "import graded; graded.score({})")
	compiled.Dir = o.folder
	out, err := compiled.CombinedOutput()
	require.NoError(t, err, string(out))
	found, err := filepath.Glob(filepath.Join(o.folder, "lib/__pycache__/late.*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	o.scores(11)
	process := o.functions.all[o.settings].now
	o.scores(11)
	require.Same(t, process, o.functions.all[o.settings].now, "code that is the same was loaded again")
	o.write("part.py", "X = 2\n")
	o.scores(12)
	o.write("lib/late.py", "X = 20\n")
	o.scores(22)
	o.write("graded.py", "def score(t):\n    return 5\n")
	o.scores(5)
}

// Code that does not load fails the call as the user's. Repaired, it is used at once, however often it was broken.
func TestCodeThatDoesNotLoad(t *testing.T) {
	o := owned(t)
	for i := range 4 {
		o.write("graded.py", "def score(t)\n    return 1\n")
		_, err := o.score()
		require.ErrorContains(t, err, "reward.module: load graded:score: the Python code raised SyntaxError")
		var own CodeError
		require.ErrorAs(t, err, &own)
		o.write("graded.py", fmt.Sprintf("def score(t):\n    return %d\n", i))
		o.scores(float64(i))
	}
	require.NoError(t, os.Remove(filepath.Join(o.folder, "graded.py")))
	_, err := o.score()
	require.ErrorContains(t, err, "ModuleNotFoundError")
}

// The listing names what was imported from the code's own folder, and nothing else.
func TestTheListingOfCode(t *testing.T) {
	sum := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return hex.EncodeToString(s[:])
	}
	lib := "def f(t):\n    return 1\n"
	for name, c := range map[string]struct {
		module string
		files  map[string]string
		path   bool // set to the folder, which is on PYTHONPATH otherwise
		want   []string
	}{
		"one file": {"graded:score", map[string]string{"graded.py": lib + "score = f\n"}, true,
			[]string{"graded.py"}},
		"no path": {"graded:f", map[string]string{"graded.py": "import json\n" + lib}, false, []string{"graded.py"}},
		"a package": {"pkg.a:f", map[string]string{"pkg/__init__.py": "", "pkg/a.py": "from .b import f\n",
			"pkg/b.py": lib, "other.py": ""}, false, []string{"pkg/__init__.py", "pkg/a.py", "pkg/b.py"}},
		"installed": {"graded:f", map[string]string{"v/site-packages/bought.py": "", "graded.py": "import sys, os\n" +
			"sys.path.append(os.path.dirname(__file__) + '/v/site-packages')\nimport bought\n" + lib}, true,
			[]string{"graded.py"}},
		"a neighbour": {"graded:f", map[string]string{"graded.py": "from near import f\n", "near.py": lib}, false,
			[]string{"graded.py", "near.py"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := owned(t)
			o.settings.Module = c.module
			if !c.path {
				o.settings.Path = ""
				t.Setenv("PYTHONPATH", o.folder)
			}
			for name, text := range c.files {
				o.write(name, text)
			}
			var want string
			for _, name := range c.want {
				want += sum(c.files[name]) + "  " + name + "\n"
			}
			got, err := o.functions.Code(t.Context(), o.settings)
			require.NoError(t, err)
			require.Equal(t, want, got)
			o.scores(1)

			o.settings.Digest = sum(want)
			if len(c.want) == 1 {
				o.settings.Digest = sum(c.files[c.want[0]])
			}
			o.scores(1)
			o.write(c.want[0], c.files[c.want[0]]+"# edited\n")
			_, err = o.score()
			var bad badinput.Error
			require.True(t, errors.As(err, &bad), err)
			require.ErrorContains(t, err, "and the recipe wants "+o.settings.Digest)
		})
	}
}

func TestEditedNamesFilesOfBothListings(t *testing.T) {
	require.Equal(t, []string{"b c.py"}, Edited("1  a.py\n2  b c.py\n3  c.py\n", "1  a.py\n4  b c.py\n5  d.py\n"))
	require.Empty(t, Edited("", "1  a.py\n"))
}

// A session that waits for its next action does not go on with code from before an edit: the episode is repeated.
func TestASessionOfEditedCode(t *testing.T) {
	o := owned(t)
	walk := "class Walk:\n    def reset(self, seed):\n        return 'start', {}\n" +
		"    def step(self, action):\n        return 'word %d', %d, True, False, {}\n"
	o.write("walks.py", fmt.Sprintf(walk, 1, 1))
	e := opened(t, "walks:Walk", map[string]any{}, env.Settings{"path": o.folder})
	_, state := start(t, e)
	o.write("walks.py", fmt.Sprintf(walk, 2, 2))
	_, got, err := e.Step(t.Context(), state, "go")
	require.NoError(t, err)
	require.Equal(t, 2.0, got.Reward)
	files, err := e.(env.Coded).Code(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{64}  walks\.py\n$`, files)
}

// A truth value of numpy is one.
func TestTruthValuesOfNumPy(t *testing.T) {
	o := owned(t)
	pythontest.Need(t, "PYTHON", "numpy")
	o.write("graded.py", "import numpy\ndef score(t):\n    return numpy.float32(0.5), numpy.float64(1) > 0\n")
	got, err := o.functions.Score(t.Context(), o.settings, []map[string]any{{}}, func(int, int) {})
	require.NoError(t, err)
	require.Equal(t, []string{"0.5 true"}, texts(got))
	o.settings.Batch = true
	o.write("graded.py", "import numpy\ndef score(ts):\n    return [(numpy.int64(1), numpy.bool_(0)) for t in ts]\n")
	got, err = o.functions.Score(t.Context(), o.settings, []map[string]any{{}, {}}, func(int, int) {})
	require.NoError(t, err)
	require.Equal(t, []string{"1 false", "1 false"}, texts(got))
}

// The program is not on the command line.
func TestTheCommandLineIsShort(t *testing.T) {
	o := owned(t)
	o.write("graded.py", "def score(t):\n    return 1\n")
	o.scores(1)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", o.functions.all[o.settings].now.cmd.Process.Pid))
	require.NoError(t, err)
	require.Less(t, len(line), 200)
	require.Contains(t, string(line), "<adapter>")
}
