package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// ticks returns about count round numbers between low and high: multiples of 1, 2 or 5 times a power of ten, and of at
// least 1 if only whole numbers make sense.
func ticks(low, high, wish float64, whole bool) (at []float64, step float64) {
	rough := (high - low) / wish
	step = math.Pow(10, math.Floor(math.Log10(rough)))
	for _, times := range []float64{1, 2, 5, 10} {
		if step*times >= rough {
			step *= times
			break
		}
	}
	if whole {
		step = math.Max(1, math.Round(step))
	}
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9; i++ {
		at = append(at, i*step)
	}
	return at, step
}

// grid draws the axes, their ticks and labels.
func (p plane) grid(b *strings.Builder, c Chart) {
	ys, step := ticks(p.y0, p.y1, yTicks, false)
	for _, y := range ys {
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, width-right, p.py(y), p.py(y))
		fmt.Fprintf(b, `<text class="tick end" x="%d" y="%.1f">%s</text>`, left-6, p.py(y)+3.5,
			html.EscapeString(tick(y, step, c.Unit)))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, left, width-right, height-bottom,
		height-bottom)
	xs, step := ticks(p.x0, p.x1, xTicks, true)
	for _, x := range xs {
		fmt.Fprintf(b, `<line class="axis" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, p.px(x), p.px(x), height-bottom,
			height-bottom+4)
		fmt.Fprintf(b, `<text class="tick middle" x="%.1f" y="%d">%s</text>`, p.px(x), height-bottom+15,
			tick(x, step, Plain))
	}
	fmt.Fprintf(b, `<text class="label middle" x="%d" y="%d">%s</text>`, left+plotWidth/2, height-4,
		html.EscapeString(c.XLabel))
	fmt.Fprintf(b, `<text class="label middle" transform="translate(11 %d) rotate(-90)">%s</text>`, top+plotHeight/2,
		html.EscapeString(c.YLabel))
}

// tick writes a number with the digits that ticks at this distance need.
func tick(v, step float64, unit Unit) string {
	if v == 0 {
		v = 0 // not −0
	}
	if unit == Percent {
		return decimals(100*v, 100*step) + "%"
	}
	if math.Abs(v) >= 10_000 {
		return short(v)
	}
	if step < 1e-3 {
		if v == 0 {
			return "0"
		}
		return scientific(v)
	}
	return decimals(v, step)
}

func decimals(v, step float64) string {
	n := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	return minus(strconv.FormatFloat(v, 'f', min(n, 9), 64))
}

// scientific writes a small number as 1.5e−4.
func scientific(v float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	n, _ := strconv.Atoi(exponent)
	mantissa = strings.TrimSuffix(strings.TrimRight(mantissa, "0"), ".")
	return minus(mantissa) + "e" + minus(strconv.Itoa(n))
}

func short(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= u.size {
			return minus(strconv.FormatFloat(v/u.size, 'g', 4, 64)) + u.name
		}
	}
	return minus(strconv.FormatFloat(v, 'g', 3, 64))
}

// Value writes a number with its unit, to three digits.
func Value(v float64, unit Unit) string {
	if math.IsNaN(v) {
		return "–"
	}
	switch unit {
	case Percent:
		return minus(strconv.FormatFloat(100*v, 'f', 1, 64)) + "%"
	case Seconds:
		return minus(strconv.FormatFloat(v, 'f', 2, 64)) + " s"
	case Milliseconds:
		return minus(strconv.FormatFloat(v, 'f', 1, 64)) + " ms"
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e9 {
		return minus(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return minus(strconv.FormatFloat(v, 'g', 3, 64))
}

// minus replaces the hyphen of negative numbers by a minus sign.
func minus(s string) string { return strings.Replace(s, "-", "−", 1) }
