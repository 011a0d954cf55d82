package reward

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLastNumberIsReadWhole(t *testing.T) {
	for _, c := range []struct {
		answer, gold string
		want         float64
	}{
		{"It is .5", "0.5", 1}, {"It is .5", "5", 0},
		{"10^6", "1000000", 1}, {"10^{6} people", "1000000", 1}, {"10^6", "6", 0}, {"2^10", "1024", 1},
		{"3-5", "5", 1}, {"3-5", "-5", 0}, {"3 - 5", "5", 1}, {"page-5", "5", 1},
		{"it is -5", "-5", 1}, {"-5", "-5", 1}, {"x=-5.", "-5", 1}, {"(-5)", "-5", 1}, {"−5", "-5", 1}, {"–5", "-5", 1},
		{"5 000", "5000", 1}, {"5 000", "0", 0}, {`5\,000`, "5000", 1}, {"5,000.50", "5000.5", 1}, {"5 0001", "1", 1},
		{"1e3", "1000", 1}, {"1e3", "1", 0}, {"1.5e-3", "0.0015", 1}, {"2E+2", "200", 1},
		{`1.5 \times 10^6`, "1500000", 1}, {"1.5×10^{-2}", "0.015", 1}, {"-2 * 10^3", "-2000", 1},
		{"10^-2", "0.01", 1}, {"10^999999999", "1", 0}, {"0^-1", "0", 0},
		{"I have 3 apples and 4 pears.", "4", 1}, {"none", "4", 0}, {"4.", "4", 1}, {"1, 2, 3", "3", 1},
		{"$1,234", "1234", 1},
		{"18", "18", 1}, {"yes", "yes", 1}, {"yes 3", "yes", 0},
	} {
		out := lastNumber.Compare(Trajectory{Answer: c.answer, Answered: true, Gold: c.gold}, Options{})
		require.Equal(t, c.want, out.Reward, "%q against %q: %+v", c.answer, c.gold, out)
	}
}

func TestOtherUnitsAreOtherAnswers(t *testing.T) {
	for _, c := range []struct {
		answer, gold string
		want         bool
	}{
		{"30 points", "30 feet", false}, {"30 points", "30", true}, {"30", "30 feet", true},
		{"30 feet", "30 feet", true},
		{"30 students", "30 meals", false}, {"30 units", "30 cm", true}, {"3 dollars", "3 dollar", true},
		{"x^2 km", "x^2 cm", false}, {`x^2\text{ km}`, "x^2 cm", false}, {"x^2 km", "x^2", true},
		{"x^2 km", "x^2 km", true},
	} {
		require.Equal(t, c.want, Compare(c.answer, c.gold, Options{}).Correct(), "%q against %q", c.answer, c.gold)
	}
}

func TestFramesAndPerCentAfterTheBox(t *testing.T) {
	for _, c := range []struct {
		text, gold string
		want       float64
	}{
		{`\fbox{5}`, "5", 1}, {`\boxed{4} or \fbox{5}`, "5", 1}, {`\fbox{4} or \boxed{5}`, "5", 1}, {`\fbox{5`, "5", 0},
		{`\boxed{50}\%`, `50\%`, 1}, {`\boxed{50} %`, "50%", 1}, {`\boxed{50}\%`, "50", 1}, {`\boxed{50\%}`, `50\%`, 1},
		{`\boxed{50}`, `50\%`, 0},
	} {
		require.Equal(t, c.want, GradeLastBox(c.text, c.gold, Options{}).Reward, "%q against %q", c.text, c.gold)
	}
}
