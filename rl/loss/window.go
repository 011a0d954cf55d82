package loss

// signedLoss is a loss of the ratio r for advantages of one sign: −A·v(r) with derivative −A·g(r), where
// v = g = r inside [lo, hi], and both are constants beyond.
type signedLoss struct {
	lo, hi         float64
	lossLo, coefLo float64 // v and g below lo
	lossHi, coefHi float64 // v and g above hi
}

// window is a loss that is piecewise in the ratio. PPO's clip, the gradient-preserving clips and the
// clipped weight of CISPO differ only in its constants.
type window struct{ positive, negative signedLoss }

// unbounded is past every ratio: exp(LogRatioClamp) is 4.9e8.
const unbounded = 1e300

// clipped returns PPO's window: with a positive advantage the ratio counts up to 1+high, with a negative one from
// 1−low on. dual, if not 0, bounds the loss of a negative advantage.
func clipped(low, high, dual float64) window {
	w := window{
		positive: signedLoss{lo: 0, hi: 1 + high, lossHi: 1 + high},
		negative: signedLoss{lo: 1 - low, hi: unbounded, lossLo: 1 - low},
	}
	if dual > 0 {
		w.negative.hi, w.negative.lossHi = dual, dual
	}
	return w
}

// evaluate writes the loss and the coefficient of every token of the block.
func (w *window) evaluate(b *Block) {
	windowLoop(w, b.Ratio, b.Advantages, b.Loss, b.Coef)
	b.dropClamped()
}

// at gives v and g of one ratio for an advantage of the given sign.
func (w *window) at(r float64, negative bool) (v, g float64) {
	p := &w.positive
	if negative {
		p = &w.negative
	}
	switch {
	case r < p.lo:
		return p.lossLo, p.coefLo
	case r > p.hi:
		return p.lossHi, p.coefHi
	}
	return r, r
}

// windowLoop writes −A·v(r) and −A·g(r).
func windowLoop(w *window, ratio, advantages, loss, coef []float64) {
	if wide != nil {
		wide.window(*w, ratio, advantages, loss, coef)
		return
	}
	advantages, loss, coef = advantages[:len(ratio)], loss[:len(ratio)], coef[:len(ratio)]
	lo, hi := max(w.positive.lo, w.negative.lo), min(w.positive.hi, w.negative.hi)
	for t, r := range ratio {
		a := -advantages[t]
		v, g := r, r
		if r < lo || r > hi { // rare; only here does the sign matter
			v, g = w.at(r, a > 0)
		}
		loss[t], coef[t] = a*v, a*g
	}
}
