package symbolic_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/sandbox/zygote/zygotetest"
)

func TestGrades(t *testing.T) {
	e := zygotetest.WithSympy(t, sandbox.TierFull)
	deep := strings.Repeat("(", 400) + "x" + strings.Repeat(")", 400)
	hostile := []pair{
		{strings.Repeat("x+", 50_000) + "x", "50001x"}, {deep, "x"}, {strings.Repeat("{", 900), "x"}, {strings.Repeat("-", 900) + "(", "x"},
		{strings.Repeat(`\sqrt`, 180) + "x", "x"}, {strings.Repeat(`\frac1`, 150) + "1", "x"}, {strings.Repeat("2^", 300) + "2", "x"},
		{strings.Repeat("9", 900), "x"}, {"x" + strings.Repeat("!", 900), "x"}, {strings.Repeat("|", 901), "x"}, {strings.Repeat("a,", 450), "x"},
	}
	for want, pairs := range map[symbolic.Verdict][]pair{
		symbolic.Equal: equals, symbolic.Different: differ, symbolic.Unreadable: append(unread, hostile[:9]...),
	} {
		require.NotEmpty(t, pairs)
		var asked []symbolic.Pair
		for i, p := range pairs {
			asked = append(asked, symbolic.Pair{Answer: p.answer, Gold: p.gold})
			if i%3 == 0 { // which of the two the policy wrote makes no difference
				asked = append(asked, symbolic.Pair{Answer: p.gold, Gold: p.answer})
			}
		}
		graded, err := symbolic.Run(t.Context(), e, asked)
		require.NoError(t, err)
		for i, g := range graded {
			require.NoError(t, g.Broken, "%.80q against %.80q", asked[i].Answer, asked[i].Gold)
			require.Equal(t, want, g.Verdict, "%.80q against %.80q", asked[i].Answer, asked[i].Gold)
			require.Regexp(t, `^sympy \d+\.\d+`, g.Grader)
		}
	}
	for _, p := range hostile[9:] { // these are something, and not x
		graded, err := symbolic.Run(t.Context(), e, []symbolic.Pair{{Answer: p.answer, Gold: p.gold}})
		require.NoError(t, err)
		require.NoError(t, graded[0].Broken)
		require.NotEqual(t, symbolic.Equal, graded[0].Verdict, "%.80q", p.answer)
	}
}

// The same pair gives the same grade, whatever ran before and beside it.
func TestGradesAreAFunctionOfThePair(t *testing.T) {
	e := zygotetest.WithSympy(t, sandbox.TierFull)
	var asked []symbolic.Pair
	for range 2 {
		for _, p := range append(equals[:8:8], differ[:4]...) {
			asked = append(asked, symbolic.Pair{Answer: p.answer, Gold: p.gold})
		}
	}
	graded, err := symbolic.Run(t.Context(), e, asked)
	require.NoError(t, err)
	n := len(asked) / 2
	for i, g := range graded {
		require.Equal(t, graded[i%n].Grade, g.Grade)
	}
}

// scripted answers calls by the pair on their input; what it has no answer to is equal.
type scripted struct {
	statuses map[string][]sandbox.Status // by answer, of one run after the other
	broken   error
	batches  []int
}

func (s *scripted) Run(_ context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	s.batches = append(s.batches, len(calls))
	if s.broken != nil {
		return nil, s.broken
	}
	out := make([]sandbox.Result, len(calls))
	for i, c := range calls {
		out[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: `{"verdict": "equal", "grader": "sympy 0"}`}
		for answer, left := range s.statuses {
			if len(left) > 0 && strings.Contains(c.Stdin, `"answer":"`+answer+`"`) {
				out[i], s.statuses[answer] = sandbox.Result{Status: left[0]}, left[1:]
			}
		}
	}
	return out, nil
}

func (*scripted) Close() error { return nil }

func TestWhatGivesNoGradeIsBreakage(t *testing.T) {
	pairs := []symbolic.Pair{{Answer: "a", Gold: "g"}, {Answer: "b", Gold: "g"}}
	for name, c := range map[string]struct {
		statuses map[string][]sandbox.Status
		broken   string // the first pair's breakage
		batches  []int
	}{
		"none":                 {nil, "", []int{2}},
		"a time-out that ends": {map[string][]sandbox.Status{"a": {sandbox.StatusTimeoutCPU}}, "", []int{2, 1}},
		"a time-out":           {map[string][]sandbox.Status{"a": {sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutCPU}}, "gave no verdict: timeout_cpu", []int{2, 1}},
		"no memory":            {map[string][]sandbox.Status{"a": {sandbox.StatusOutOfMemory, sandbox.StatusOutOfMemory}}, "gave no verdict: out_of_memory", []int{2, 1}},
		"an exception":         {map[string][]sandbox.Status{"a": {sandbox.StatusRuntime, sandbox.StatusRuntime}}, "gave no verdict: runtime_error", []int{2, 1}},
		"silence":              {map[string][]sandbox.Status{"a": {sandbox.StatusOK, sandbox.StatusOK}}, "read the verdict", []int{2, 1}},
	} {
		s := &scripted{statuses: c.statuses}
		graded, err := symbolic.Run(t.Context(), s, pairs)
		require.NoError(t, err, name)
		require.Equal(t, c.batches, s.batches, name)
		require.Equal(t, symbolic.Graded{Grade: symbolic.Grade{Verdict: symbolic.Equal, Grader: "sympy 0"}}, graded[1], name)
		if c.broken == "" {
			require.Equal(t, graded[1], graded[0], name)
			continue
		}
		require.ErrorContains(t, graded[0].Broken, c.broken, name)
		require.Zero(t, graded[0].Grade, name)
	}
}

func TestASandboxThatGradesNothingIsAnError(t *testing.T) {
	pairs := []symbolic.Pair{{Answer: "a", Gold: "g"}, {Answer: "b", Gold: "g"}}
	out := []sandbox.Status{sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutCPU}
	_, err := symbolic.Run(t.Context(), &scripted{statuses: map[string][]sandbox.Status{"a": out, "b": out}}, pairs)
	require.ErrorContains(t, err, "compare 2 answers: none got a verdict: the call that compares gave no verdict: timeout_cpu")
	graded, err := symbolic.Run(t.Context(), &scripted{statuses: map[string][]sandbox.Status{"a": out}}, pairs[:1])
	require.NoError(t, err, "one pair alone may be to blame")
	require.Error(t, graded[0].Broken)
	gone := errors.New("the zygote is gone")
	_, err = symbolic.Run(t.Context(), &scripted{broken: gone}, pairs)
	require.ErrorIs(t, err, gone)
}

func TestAvailable(t *testing.T) {
	require.NoError(t, symbolic.Available(t.Context(), &scripted{}))
	require.ErrorIs(t, symbolic.Available(t.Context(), &scripted{broken: sandbox.ErrBadCall}), symbolic.ErrNoSympy)
	bare, err := zygote.Open(zygote.Options{Workers: 1, Sets: []zygote.PackageSet{{Name: sandbox.PackagesBare}, {Name: sandbox.PackagesSympy, Modules: []string{"no_such_module"}}}})
	if errors.Is(err, sandbox.ErrNoPython) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, bare.Close()) }()
	require.ErrorIs(t, symbolic.Available(t.Context(), bare), symbolic.ErrNoSympy)
	_, err = symbolic.Run(t.Context(), bare, []symbolic.Pair{{Answer: "a", Gold: "b"}, {Answer: "c", Gold: "d"}})
	require.ErrorIs(t, err, symbolic.ErrNoSympy)
	gone := errors.New("the zygote is gone")
	require.ErrorIs(t, symbolic.Available(t.Context(), &scripted{broken: gone}), gone)
	require.ErrorContains(t, symbolic.Available(t.Context(), &scripted{statuses: map[string][]sandbox.Status{"x+1": {"", ""}}}), "gave no verdict")
}
