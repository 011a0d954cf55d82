package gsm8k

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseExpression(t *testing.T) {
	for _, c := range []struct {
		text, python string
		value        float64
	}{
		{"16-3-4", "16-3-4", 9},
		{"2*1/2", "2*1/2", 1},
		{"10-(2+3)", "10-(2+3)", 5},
		{"24/4/2", "24/4/2", 3},
		{"-3+-2", "-3+-2", -5},
		{"3--2", "3--2", 5},
		{"24+27+(-48)", "24+27+(-48)", 3},
		{"600*(1+.1)", "600*(1+0.1)", 660},
		{"50000*5%", "50000*(5/100)", 2500},
		{"10/(2)%", "10/((2)/100)", 500},
		{"50%%", "((50/100)/100)", 0.005},
		{"100+10%", "100+(10/100)", 100.1},
		{"3,650*10/100", "3650*10/100", 365},
		{"1,234,567.5", "1234567.5", 1234567.5},
		{"$5.50*2", "5.50*2", 11},
		{"-$5", "-5", -5},
		{"$ 20", "20", 20},
		{"007+08", "7+8", 15},
		{"000+0.50+00.5", "0+0.50+0.5", 1},
		{"3 × 4 ÷ 2", "3*4/2", 6},
		{"3x4 X 2·2", "3*4*2*2", 48},
		{"7−2–1", "7-2-1", 4},
		{"5+2(3)", "5+2*(3)", 11},
		{"(1+2)(3)[4]", "(1+2)*(3)*(4)", 36},
		{"2(3)^2", "2*(3)**2", 18},
		{"-2^2", "-2**2", -4},
		{"2**-1", "2**-1", 0.5},
		{"2^3^2", "2**3**2", 512},
		{"7//2", "7//2", 3},
		{"1.5e3*2", "1.5e3*2", 3000},
		{"5.", "5.", 5},
	} {
		e, err := ParseExpression(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.python, e.Python(), c.text)
		require.InDelta(t, c.value, e.Value(), 1e-9, c.text)
	}
}

func TestNoExpression(t *testing.T) {
	for text, want := range map[string]string{
		"":             "unexpected end",
		"3+":           "unexpected end",
		"X*.25":        `unexpected "X" at byte 0`,
		"28-2x":        "unexpected end",
		"2/case*80":    `unexpected "c" at byte 2`,
		"150 000":      `unexpected "0" at byte 4`,
		"(3":           "unexpected end",
		"(3]":          `unexpected "]" at byte 2`,
		"3)":           `unexpected ")" at byte 1`,
		"1,2":          `unexpected "," at byte 1`,
		"10:30":        `unexpected ":" at byte 2`,
		"5é":           `unexpected "é" at byte 1`,
		"July19-Dec31": `unexpected "J" at byte 0`,
	} {
		_, err := ParseExpression(text)
		require.ErrorContains(t, err, want, text)
	}
	for _, text := range []string{strings.Repeat("(", 5000), strings.Repeat("-", 300) + "1", strings.Repeat("(", 300)} {
		_, err := ParseExpression(text)
		require.Error(t, err)
	}
	e, err := ParseExpression("1/0")
	require.NoError(t, err)
	require.True(t, math.IsInf(e.Value(), 1))
}

func TestAgrees(t *testing.T) {
	for _, c := range []struct {
		stdout, annotated string
		want              bool
	}{
		{"13\n", "13", true},
		{"1.0\n", "1", true},
		{"0.3333333333333333\n", "0.333333", true},
		{"0.3333333333333333\n", "0.3333", false},
		{"1000000\n", "1000000.9", true},
		{"1000000\n", "1000001.1", false},
		{"240000\n", "240,000", true},
		{"5.5\n", "$5.50", true},
		{"0.5\n", "50%", true},
		{"50\n", "50%", false},
		{"0.3333333333333333\n", "1/3", true},
		{"-4\n", "-4", true},
		{"0\n", "0", true},
		{"5.551115123125783e-17\n", "0", false},
		{"13\n14\n", "13", false},
		{"", "13", false},
		{"", "", false},
		{"13\n", "", false},
		{"2.0\n", "2.0=2.0", false},
		{"8\n", "s", false},
		{"nan\n", "0/0", false},
		{"inf\n", "1/0", false},
		{"1\n", "1/0", false},
	} {
		require.Equal(t, c.want, Agrees(c.stdout, c.annotated), "%q against %q", c.stdout, c.annotated)
	}
}

func FuzzParseExpression(f *testing.F) {
	for _, s := range []string{"16-3", "5%%*(2)", "$1,000^2", "((", "1e999", "00.", ".", "2x", "−−1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpression(text)
		if err != nil {
			return
		}
		// Our output is valid in our own notation too and has the same value.
		again, err := ParseExpression(e.Python())
		if err != nil {
			if strings.Contains(err.Error(), "longer than") || strings.Contains(err.Error(), "deeper than") {
				return
			}
			t.Fatal(err)
		}
		if a, b := e.Value(), again.Value(); a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
			t.Fatalf("%q: %v, rendered %q: %v", text, a, e.Python(), b)
		}
	})
}
