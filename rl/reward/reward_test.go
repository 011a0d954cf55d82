package reward

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	tests := []struct {
		answer, gold string
		want         Verdict
	}{
		{"42", "42", Exact}, {" 42 ", "42", Exact}, {"42", "43", Wrong}, {"", "", Wrong}, {"", "0", Wrong},
		{"1,234", "1234", Exact}, {"$1,234.00", "1234", Rational}, {`\$1,234`, "1234", Exact}, {
			"1,234,567.50", "1234567.5", Rational,
		},
		{"18.0", "18", Rational}, {"18.", "18", Rational}, {"018", "18", Rational}, {".5", "0.5", Rational},
		{"+7", "7", Rational},
		{"5 dollars", "5", Exact}, {"5 Dollars", "5", Rational}, {"5 square feet", "5", Exact}, {
			`5 \text{ hours}`, "5", Exact,
		}, {"$5", "5", Exact},
		{"-3", "-3", Exact}, {"\u22123", "-3", Exact}, {"-3", "3", Wrong}, {"-0", "0", Rational},
		{"50%", "0.5", Rational}, {`50\%`, "1/2", Rational}, {"50%", "50%", Exact}, {
			"50 percent", "50%", Rational,
		}, {"50%", "50", Wrong},
		{"1/2", "0.5", Rational}, {`\frac{1}{2}`, "1/2", Rational}, {
			`\frac12`, `\frac{1}{2}`, Exact,
		}, {`\dfrac{2}{4}`, "0.5", Rational},
		{
			`-\frac{3}{4}`, "-0.75", Rational,
		}, {`\frac{-3}{4}`, "-0.75", Rational}, {`\frac{1}{0}`, "1", Wrong}, {"1/0", "1/0", Exact},
		{"1 1/2", "1.5", Rational}, {
			`1\frac{1}{2}`, "3/2", Rational,
		}, {"-1 1/2", "-1.5", Rational}, {`1\frac12`, "1.5", Rational},
		{"1 1/2", "11/2", Wrong}, {"11/2", "5.5", Rational},
		{`\sqrt{16}`, "4", Rational}, {
			`\sqrt{2}`, "1.41421356", Numeric,
		}, {`2\sqrt{3}`, `\sqrt{12}`, Numeric}, {`\sqrt{2}`, "1.4142", Wrong},
		{
			`\frac{\sqrt{2}}{2}`, `\frac{1}{\sqrt{2}}`, Numeric,
		}, {`\sqrt{\frac{9}{4}}`, "1.5", Rational}, {`\sqrt[3]{27}`, "3", Numeric}, {`\sqrt{-1}`, "1", Wrong},
		{"x = 5", "5", Exact}, {"2+3=5", "5", Exact}, {"x=2, y=3", "3", Wrong}, {"x=2, y=3", "2, 3", Set},
		{"0.1", "1/10", Rational}, {"0.333333", "1/3", Wrong}, {
			"100000000000000000001", "100000000000000000000", Wrong,
		},
		{"1, 2, 3", "3,2,1", Set}, {`\{1, 2\}`, "2, 1", Set}, {"1,2", "1,2", Exact}, {"1,2", "12", Wrong},
		{"1,2,2", "1,1,2", Wrong},
		{"2 and 3", "3, 2", Set}, {`\frac{1}{2}, 3`, "3, 0.5", Set}, {"1,2,3", "1,2", Wrong}, {
			"300, 200, 100", "100,200,300", Set,
		},
		{"(1, 2)", "(1,2)", Exact}, {"(1.0, 2)", "(1,2)", Tuple}, {"(2,1)", "(1,2)", Wrong}, {"[1,2)", "(1,2)", Wrong},
		{`\left[0, \frac{1}{2}\right)`, "[0,0.5)", Tuple},
		{"(100, 200)", "(100,200)", Exact}, {"(1,2)", "1,2", Wrong}, {
			"((1,2),(3,4))", "((1,2.0),(3,4))", Tuple,
		}, {"{(1,2),(3,4)}", "{(3,4),(1,2)}", Set},
		{`\text{east}`, "east", Exact}, {"east", "west", Wrong}, {"x+1", "x + 1", Exact}, {"3+4", "7", Wrong},
		{"2*3", "6", Wrong},
		{"5 x", "5", Wrong}, {
			"-1.8 billion", "-1.8", Wrong,
		}, {"12 apples", "12", Wrong}, {"abc", "", Wrong}, {"5%%", "0.05", Wrong},
		{`90^\circ`, "90", Exact}, {"90°", "90", Rational},
	}
	for _, tt := range tests {
		if got := Compare(tt.answer, tt.gold, Options{}); got != tt.want {
			t.Errorf("%q against %q: %s, want %s", tt.answer, tt.gold, got, tt.want)
		}
	}
}

func TestLiteralAsksForTheNumberItself(t *testing.T) {
	tests := []struct {
		answer, gold string
		want         bool
	}{
		{"4", "4", true}, {"4.0", "4", true}, {"$4", "4", true}, {"400%", "4", true}, {"-4", "-4", true},
		{"1,000", "1000", true},
		{"12/3", "4", false}, {`\sqrt{16}`, "4", false}, {`\frac{8}{2}`, "4", false}, {"3 4/4", "4", false},
		{"(4)", "4", false},
		{"1 2", "12", false},
		{"2/4", "1/2", true}, {"east", "east", true}, {"1, 2", "2,1", true},
	}
	for _, tt := range tests {
		if got := Compare(tt.answer, tt.gold, Options{Literal: true}); got.Correct() != tt.want {
			t.Errorf("%q against %q: %s, want correct %v", tt.answer, tt.gold, got, tt.want)
		}
	}
}

func TestGrade(t *testing.T) {
	tests := []struct {
		name, text string
		fallback   bool
		want       Outcome
	}{
		{"right", `<answer>\boxed{18}</answer>`, false, Outcome{1, Exact, "18"}},
		{"wrong", `<answer>\boxed{17}</answer>`, false, Outcome{0, Wrong, "17"}},
		{"last block", `<answer>\boxed{17}</answer><answer>\boxed{18}</answer>`, false, Outcome{1, Exact, "18"}},
		{"last box of the block", `<answer>\boxed{17} or \boxed{18}</answer>`, false, Outcome{1, Exact, "18"}},
		{"box after the block", `<answer>\boxed{17}</answer>\boxed{18}`, false, Outcome{0, Wrong, "17"}},
		{
			"open block after a closed one", `<answer>\boxed{18}</answer><answer>\boxed{1`, false,
			Outcome{1, Exact, "18"},
		},
		{"no block", `\boxed{18}`, false, Outcome{0, NoAnswer, ""}},
		{"no block, fallback", `\boxed{18}`, true, Outcome{1, Exact, "18"}},
		{"no box", `<answer>18</answer>`, false, Outcome{0, NoBox, ""}},
		{"box outside, fallback", `\boxed{18}<answer>18</answer>`, true, Outcome{1, Exact, "18"}},
		{"nothing, fallback", `18`, true, Outcome{0, NoAnswer, ""}},
		{"unterminated box", `<answer>\boxed{18</answer>`, false, Outcome{0, NoBox, ""}},
		{"only a closing tag", `\boxed{18}</answer>`, false, Outcome{0, NoAnswer, ""}},
		{"nothing", ``, false, Outcome{0, NoAnswer, ""}},
	}
	for _, tt := range tests {
		if got := Grade(tt.text, "18", Options{Fallback: tt.fallback}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestNormalize(t *testing.T) {
	tests := []struct{ in, want string }{
		{"x = 5", "5"}, {`$5$`, "5"}, {
			`the answer is $\frac12$ ok`, `\frac{1}{2}`,
		}, {`\text{5 dollars}`, "5"}, {"1,234,567", "1234567"},
		{`\sqrt2`, `\sqrt{2}`}, {`\mbox{cm}`, ""}, {`a dog`, "dog"}, {`5\ \text{and}6`, "5 6"},
		{`5,\text{and}6`, "5,6"},
		{`0.\overline{3}`, `0.\overline{3}`}, {`\overline{AB}`, "AB"}, {`12^\circ`, "12"}, {",", ","},
	}
	for _, tt := range tests {
		if got := normalize(readEquation(tt.in).last); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

// Every way of writing a rational compares equal to it, and to no other.
func TestRationalForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n, d := rng.Int64N(20001)-10000, []int64{1, 2, 4, 5, 8, 10, 20, 25}[rng.IntN(8)]
		gold := big.NewRat(n, d)
		whole, rest := new(big.Int).QuoRem(new(big.Int).Abs(big.NewInt(n)), big.NewInt(d), new(big.Int))
		sign := ""
		if n < 0 {
			sign = "-"
		}
		forms := []string{
			gold.FloatString(3), fmt.Sprintf(`\frac{%d}{%d}`, n, d), fmt.Sprintf("%d/%d", n, d),
			new(big.Rat).Mul(gold, big.NewRat(100, 1)).FloatString(2) + `\%`, fmt.Sprintf(
				"%s%s %s/%d", sign, whole, rest, d,
			),
		}
		for _, form := range forms {
			if v := Compare(form, gold.RatString(), Options{}); !v.Correct() {
				t.Fatalf("%q against %s: %s", form, gold.RatString(), v)
			}
			other := new(big.Rat).Add(gold, big.NewRat(1, 1000))
			if v := Compare(form, other.RatString(), Options{}); v.Correct() {
				t.Fatalf("%q against %s: %s", form, other.RatString(), v)
			}
		}
	}
}

func TestGradingIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"digits":   strings.Repeat("9", 1<<16),
		"nesting":  strings.Repeat(`\frac{1}{`, 1<<13),
		"brackets": strings.Repeat("(", 1<<16),
		"commas":   strings.Repeat("1,", 1<<15),
		"tags":     strings.Repeat("<answer>", 1<<13),
		"boxes":    strings.Repeat(`\boxed{`, 1<<13),
	} {
		if v := Compare(text, "1", Options{}); v.Correct() {
			t.Errorf("%s: %s", name, v)
		}
		if o := Grade(`<answer>\boxed{`+text+`}</answer>`, "1", Options{Fallback: true}); o.Reward != 0 {
			t.Errorf("%s: %s", name, o.Verdict)
		}
	}
}

// A number beyond a float64 is near nothing: else the root of 401 nines would be any gold.
func TestNumbersBeyondFloat64AgreeOnlyExactly(t *testing.T) {
	huge := strings.Repeat("9", 401)
	for _, answer := range []string{`\sqrt{` + huge + `}`, `\sqrt[3]{` + huge + `}`, `\frac{\sqrt{2}}{` + huge + `}`,
		`\frac{1}{\sqrt{` + huge + `}}`} {
		for _, gold := range []string{"5", "0", "-3", `\sqrt{2}`, "1/3", huge} {
			if v := Compare(answer, gold, Options{}); v.Correct() {
				t.Errorf("%.12q… against %.12s: %s", answer, gold, v)
			}
		}
	}
	for answer, gold := range map[string]string{huge: huge + ".0", `0\sqrt{2}`: "0", `\sqrt[3]{0}`: "0",
		`\frac{0}{\sqrt{2}}`: "0"} {
		if v := Compare(answer, gold, Options{}); !v.Correct() {
			t.Errorf("%.12q against %.12s: %s", answer, gold, v)
		}
	}
}

func FuzzCompare(f *testing.F) {
	for _, seed := range []string{"1", "1,234", `\frac{1}{2}`, "(1,2)", `\sqrt[3]{8}`, "1 1/2", "50%", `\{a,b\}`,
		"x=1,y=2"} {
		f.Add(seed, "1")
	}
	f.Fuzz(func(t *testing.T, answer, gold string) {
		if Compare(answer, gold, Options{Literal: true}).Correct() && !Compare(answer, gold, Options{}).Correct() {
			t.Errorf("%q against %q is right only when strict", answer, gold)
		}
		if strings.TrimSpace(answer) != "" && !Compare(answer, answer, Options{}).Correct() {
			t.Errorf("%q differs from itself", answer)
		}
	})
}

func ExampleGrade() {
	text := `12*9 is <tool_call>…</tool_call> so <answer>\boxed{108.0}</answer>`
	o := Grade(text, "108", Options{})
	fmt.Println(o.Reward, o.Verdict, o.Answer)
	// Output: 1 rational 108.0
}
