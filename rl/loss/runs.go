package loss

import "math"

// Losses without an importance ratio, −logp, H and the KL estimates k1, |Δ| and ½Δ², are evaluated over runs: each
// run of tokens under the mask is read once in place, without a block, and its cotangents are written at the same
// time. A loop keeps only sums.

// runTerms reports whether every term of the objective has a loop over runs.
func (o *Objective) runTerms() bool {
	if o.Policy != nil {
		if _, ok := o.Policy.(BehaviourCloning); !ok {
			return false
		}
	}
	if o.KL == nil {
		return true
	}
	switch o.KL.Estimator {
	case K1, AbsKL, K2:
		return true
	}
	return false
}

// runs evaluates a row run by run.
func (p *rowPass[T]) runs() {
	for _, s := range p.segments {
		to := s.from + s.n
		if p.cotangents != nil {
			clear(p.cotangents[p.written:s.from])
			p.logProbRun(s.from, to)
		}
		if p.row.Entropies != nil {
			p.entropyRun(p.written, s.from, to)
		}
		p.written = to
	}
}

// logProbRun does the terms of the log-probabilities over one run.
func (p *rowPass[T]) logProbRun(from, to int) {
	o, r := &p.job.objective, p.row
	logp, dst := r.LogProbs[from:to], p.cotangents[from:to]
	base := 0.0 // of −logp
	if o.Policy != nil {
		base = -p.policy
	}
	if o.KL == nil {
		p.loss -= fillTotalLoop(dst, T(base), logp)
		return
	}
	if o.Policy != nil {
		p.loss -= totalLoop(logp)
	}
	ref, slope := r.Ref[from:to], o.KL.Coefficient*p.rest
	switch o.KL.Estimator {
	case AbsKL:
		p.kl += absLoop(dst, logp, ref, base, slope)
	case K2:
		p.kl += squareLoop(dst, logp, ref, base, slope) / 2
	default:
		p.kl += fillTotalLoop(dst, T(base+slope), logp) - totalLoop(ref)
	}
}

// entropyRun adds up a run's entropies; their cotangent is the same for each.
func (p *rowPass[T]) entropyRun(written, from, to int) {
	entropies := p.row.Entropies[from:to]
	if p.entropies == nil {
		p.ents += totalLoop(entropies)
		return
	}
	clear(p.entropies[written:from])
	p.ents += fillTotalLoop(p.entropies[from:to], p.bonus, entropies)
}

// fillTotalLoop is totalLoop of x; every element of dst becomes v.
func fillTotalLoop[T Float](dst []T, v T, x []T) float64 {
	if x32, ok := any(x).([]float32); ok && wide != nil {
		return wide.fillTotal(any(dst).([]float32), float32(v), x32)
	}
	var s0, s1, s2, s3 float64
	t := 0
	for ; t+4 <= len(x); t += 4 {
		y, z := x[t:t+4:t+4], dst[t:t+4:t+4]
		s0, s1, s2, s3 = s0+float64(y[0]), s1+float64(y[1]), s2+float64(y[2]), s3+float64(y[3])
		z[0], z[1], z[2], z[3] = v, v, v, v
	}
	for ; t < len(x); t++ {
		s0 += float64(x[t])
		dst[t] = v
	}
	return (s0 + s2) + (s1 + s3)
}

// absLoop is Σ|x − y|; dst becomes base + slope·sign(x − y), with slope ≥ 0.
func absLoop[T Float](dst, x, y []T, base, slope float64) (sum float64) {
	if x32, ok := any(x).([]float32); ok && wide != nil {
		return wide.abs(any(dst).([]float32), x32, any(y).([]float32), base, slope)
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for t := range dst {
		d := float64(x[t]) - float64(y[t])
		sum += math.Abs(d)
		g := math.Copysign(slope, d)
		if d == 0 {
			g = 0
		}
		dst[t] = T(base + g)
	}
	return sum
}

// squareLoop is Σ(x − y)²; dst becomes base + slope·(x − y).
func squareLoop[T Float](dst, x, y []T, base, slope float64) (sum float64) {
	if x32, ok := any(x).([]float32); ok && wide != nil {
		return wide.square(any(dst).([]float32), x32, any(y).([]float32), base, slope)
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for t := range dst {
		d := float64(x[t]) - float64(y[t])
		sum += d * d
		dst[t] = T(base + slope*d)
	}
	return sum
}
