package symbolic_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// The tests that need sympy share an executor.
func TestSympy(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_SANDBOX", "test-sandbox")
	e := zygotetest.WithSympy(t, sandbox.TierFull)
	t.Run("grades", func(t *testing.T) { testGrades(t, e) })
	t.Run("the cost of numbers is bounded", func(t *testing.T) { testTheCostOfNumbers(t, e) })
	t.Run("grades are a function of the pair", func(t *testing.T) { testRepeatedPairs(t, e) })
}

func testGrades(t *testing.T, e *zygote.Executor) {
	deep := strings.Repeat("(", 400) + "x" + strings.Repeat(")", 400)
	hostile := []pair{
		{strings.Repeat("x+", 50_000) + "x", "50001x"}, {deep, "x"}, {strings.Repeat("{", 900), "x"},
		{strings.Repeat("-", 900) + "(", "x"},
		{strings.Repeat(`\sqrt`, 180) + "x", "x"}, {strings.Repeat(`\frac1`, 150) + "1", "x"},
		{strings.Repeat("2^", 300) + "2", "x"},
		{strings.Repeat("9", 900), "x"}, {"x" + strings.Repeat("!", 900), "x"}, {strings.Repeat("|", 901), "x"},
		{strings.Repeat("a,", 450), "x"},
	}
	for want, pairs := range map[symbolic.Verdict][]pair{
		symbolic.Equal: equals, symbolic.Different: differ, symbolic.Unreadable: append(unread, hostile[:9]...),
	} {
		require.NotEmpty(t, pairs)
		var asked []symbolic.Pair
		for i, p := range pairs {
			asked = append(asked, symbolic.Pair{Answer: p.answer, Gold: p.gold})
			if i%3 == 0 { // it makes no difference which of the two the policy wrote
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
	for _, p := range hostile[9:] { // these are expressions, but not x
		graded, err := symbolic.Run(t.Context(), e, []symbolic.Pair{{Answer: p.answer, Gold: p.gold}})
		require.NoError(t, err)
		require.NoError(t, graded[0].Broken)
		require.NotEqual(t, symbolic.Equal, graded[0].Verdict, "%.80q", p.answer)
	}
}

// The numbers that a thousand bytes can produce are stopped by a bound on bits, which is the same on every machine, and
// not by a time limit.
func testTheCostOfNumbers(t *testing.T, e *zygote.Executor) {
	joined := func(sign string, terms int, term func(int) string) string {
		var all []string
		for i := range terms {
			all = append(all, term(i))
		}
		return strings.Join(all, sign)
	}
	power := func(format string) func(int) string { return func(i int) string { return fmt.Sprintf(format, 2*i+3) } }
	var asked []symbolic.Pair
	for _, answer := range []string{
		joined("+", 50, power(`1/(%d^{9000}+1)`)), joined("*", 60, power(`(%d^{9000}+1)`)),
		joined("/", 60, power(`(%d^{9000}+1)`)),
		joined("+", 40, power(`\sqrt{%d^{20000}+1}`)), joined("*", 60, power(`\sqrt{%d^{99}+1}`)),
		joined("*", 90, power(`(1+1/(%d!))`)),
		joined("+", 60, power(`|%d^{900}+i|`)), joined("+", 50, power(`\exp(\ln(%d^{9000})/2)`)),
		joined("*", 150, power(`9%d!`)),
	} {
		require.LessOrEqual(t, len(answer), 1300)
		asked = append(asked, symbolic.Pair{Answer: answer, Gold: "x"}, symbolic.Pair{Answer: "x", Gold: answer})
	}
	graded, err := symbolic.Run(t.Context(), e, asked)
	require.NoError(t, err)
	for i, g := range graded {
		require.NoError(t, g.Broken, "%.40s", asked[i])
		require.Equal(t, symbolic.Unreadable, g.Verdict, "%.40s", asked[i])
		require.Regexp(t, `^sympy `, g.Grader, "%.40s", asked[i])
	}
}

// The same pair gets the same grade, whatever ran before it and at the same time.
func testRepeatedPairs(t *testing.T, e *zygote.Executor) {
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

// scripted answers calls by the pair in their input. Pairs that it does not know are equal.
type scripted struct {
	statuses map[string][]sandbox.Status // answer → the statuses of successive runs
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

func TestNoGradeIsBreakageAndALimitIsAGrade(t *testing.T) {
	pairs := []symbolic.Pair{{Answer: "a", Gold: "g"}, {Answer: "b", Gold: "g"}}
	for name, c := range map[string]struct {
		statuses map[string][]sandbox.Status
		broken   string // the first pair's breakage
		limit    string // or the limit that makes it unreadable
		batches  []int
	}{
		"none":                 {nil, "", "", []int{2}},
		"a time-out that ends": {twice("a", sandbox.StatusTimeoutCPU)(1), "", "", []int{2, 1, 1}},
		"a time-out":           {twice("a", sandbox.StatusTimeoutCPU)(2), "", "timeout_cpu", []int{2, 1, 1}},
		"a long time-out":      {twice("a", sandbox.StatusTimeoutWall)(2), "", "timeout_wall", []int{2, 1, 1}},
		"no memory":            {twice("a", sandbox.StatusOutOfMemory)(2), "", "out_of_memory", []int{2, 1, 1}},
		"an exception":         {twice("a", sandbox.StatusRuntime)(2), "", "runtime_error", []int{2, 1, 1}},
		"a kill that ends":     {twice("a", sandbox.StatusKilled)(1), "", "", []int{2, 1}},
		"a kill":               {twice("a", sandbox.StatusKilled)(2), "gave no verdict: killed", "", []int{2, 1}},
		"silence":              {twice("a", sandbox.StatusOK)(2), "read the verdict", "", []int{2, 1}},
	} {
		s := &scripted{statuses: c.statuses}
		graded, err := symbolic.Run(t.Context(), s, pairs)
		require.NoError(t, err, name)
		require.Equal(t, c.batches, s.batches, name)
		require.Equal(t, symbolic.Graded{Grade: symbolic.Grade{Verdict: symbolic.Equal, Grader: "sympy 0"}}, graded[1],
			name)
		if c.limit != "" {
			want := symbolic.Graded{Grade: symbolic.Grade{Verdict: symbolic.Unreadable, Grader: "limit " + c.limit}}
			require.Equal(t, want, graded[0], name)
			continue
		}
		if c.broken == "" {
			require.Equal(t, graded[1], graded[0], name)
			continue
		}
		require.ErrorContains(t, graded[0].Broken, c.broken, name)
		require.Zero(t, graded[0].Grade, name)
	}
}

// twice returns a script that gives one status to an answer, n times.
func twice(answer string, status sandbox.Status) func(int) map[string][]sandbox.Status {
	return func(n int) map[string][]sandbox.Status {
		return map[string][]sandbox.Status{answer: slices.Repeat([]sandbox.Status{status}, n)}
	}
}

func TestASandboxWithoutGradesIsAnError(t *testing.T) {
	pairs := []symbolic.Pair{{Answer: "a", Gold: "g"}, {Answer: "b", Gold: "g"}}
	out := []sandbox.Status{sandbox.StatusKilled, sandbox.StatusKilled}
	_, err := symbolic.Run(t.Context(), &scripted{statuses: map[string][]sandbox.Status{"a": out, "b": out}}, pairs)
	require.ErrorContains(t, err,
		"compare 2 answers: none got a verdict: the call that compares gave no verdict: killed")
	graded, err := symbolic.Run(t.Context(), &scripted{statuses: map[string][]sandbox.Status{"a": out}}, pairs[:1])
	require.NoError(t, err, "one pair alone may be to blame")
	require.Error(t, graded[0].Broken)
	slow := slices.Repeat([]sandbox.Status{sandbox.StatusTimeoutCPU}, 3)
	graded, err = symbolic.Run(t.Context(), &scripted{statuses: map[string][]sandbox.Status{"a": slow, "b": slow}},
		pairs)
	require.NoError(t, err, "a time-out does not avoid the grade of a wrong answer")
	require.Equal(t, []symbolic.Verdict{symbolic.Unreadable, symbolic.Unreadable},
		[]symbolic.Verdict{graded[0].Verdict, graded[1].Verdict})
	_, err = symbolic.Run(t.Context(), &scripted{statuses: map[string][]sandbox.Status{"a": slow, "x+1": slow}}, pairs)
	require.ErrorContains(t, err, "a limit ended a comparison", "the machine is too slow for any pair")
	gone := errors.New("the zygote is gone")
	_, err = symbolic.Run(t.Context(), &scripted{broken: gone}, pairs)
	require.ErrorIs(t, err, gone)
}

func TestAvailable(t *testing.T) {
	require.NoError(t, symbolic.Available(t.Context(), &scripted{}))
	require.ErrorIs(t, symbolic.Available(t.Context(), &scripted{broken: sandbox.ErrBadCall}), symbolic.ErrNoSympy)
	bare, err := zygote.Open(zygote.Options{Workers: 1,
		Sets: []zygote.PackageSet{{Name: sandbox.PackagesBare},
			{Name: sandbox.PackagesSympy, Modules: []string{"no_such_module"}}}})
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
	require.ErrorContains(t, symbolic.Available(t.Context(),
		&scripted{statuses: map[string][]sandbox.Status{"x+1": {"", ""}}}), "gave no verdict")
}
