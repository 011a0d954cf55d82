package loss

import "math"

// How one row is evaluated: its tokens under the mask are gathered into blocks without gaps and widened
// to float64. Every term works on a block. The cotangents are then written back to the places of their tokens.
// Losses without a ratio are evaluated in place (runs.go). Values off the mask are never read.

// rowPass is the state of one row's evaluation.
type rowPass[T Float] struct {
	*worker
	job  *job[T]
	row  *Row[T]
	full bool // no token is off the mask

	copies         float64
	policy, rest   float64 // weights of a token in the policy loss and in the penalties
	bonus          T       // cotangent of a token's entropy
	dropped        bool
	cotangents     []T
	entropies      []T
	written        int // cotangents before this token are written
	sum            rowSums
	least, most    float64 // of the log-ratio
	suspect        float64 // not finite if any input was not finite
	greatestOld    float64
	loss, kl, ents float64 // token sums
}

// evaluateRow evaluates row i. A dead row gives only zeros.
func evaluateRow[T Float](w *worker, j *job[T], i int) rowSums {
	r := &j.rows[i]
	if !j.shapeOK(r) {
		return rowSums{err: j.check(*r)}
	}
	tokens, ok := w.count(r.Mask, j.overRuns)
	if !ok {
		return rowSums{err: j.check(*r)}
	}
	p := rowPass[T]{worker: w, job: j, row: r, full: tokens == len(r.Mask), copies: float64(r.Count)}
	if j.cotangents != nil {
		p.cotangents = j.cotangents[i]
	}
	if j.entropies != nil {
		p.entropies = j.entropies[i]
	}
	if tokens == 0 {
		clear(p.cotangents)
		clear(p.entropies)
		return rowSums{}
	}
	p.run(tokens)
	if !finite(p.suspect) || p.greatestOld > oldSlack {
		if err := j.check(*r); err != nil {
			return rowSums{err: err}
		}
	}
	return p.sum
}

func (p *rowPass[T]) run(tokens int) {
	j := p.job
	p.policy, p.rest = j.plan.Policy.Weight(tokens), j.plan.Penalty.Weight(tokens)*p.copies
	if h := j.objective.Entropy; h != nil {
		p.bonus = T(-h.Coefficient * p.rest)
	}
	if !j.inputs.ratios() {
		p.policy *= p.copies // no advantage carries the copies' weight
	}
	p.block.Tokens = tokens
	p.least, p.most, p.greatestOld = math.Inf(1), math.Inf(-1), math.Inf(-1)
	if j.inputs.has(Sequence) || j.objective.SequenceMask != nil {
		p.means(tokens)
	}
	if j.overRuns {
		p.runs()
	} else {
		p.blocks()
	}
	clear(p.cotangents[min(p.written, len(p.cotangents)):])
	clear(p.entropies[min(p.written, len(p.entropies)):])
	p.finish(tokens)
}

func (p *rowPass[T]) blocks() {
	for t := 0; t < len(p.row.Mask); {
		if t = p.step(t); p.tokens > 0 {
			p.evaluate()
		}
	}
}

func (p *rowPass[T]) step(t int) int {
	if p.full {
		return p.nextWhole(p.row.Mask, t)
	}
	return p.next(p.row.Mask, t)
}

// means is the first pass of losses that need the whole row before any of its tokens.
func (p *rowPass[T]) means(tokens int) {
	ratios, advantages := 0.0, 0.0
	for t := 0; t < len(p.row.Mask); {
		if t = p.step(t); p.tokens == 0 {
			continue
		}
		sum, _, _ := subLoop(
			p.buffer(bufLogRatio), gather(p.worker, bufLogProbs, p.row.LogProbs), gather(p.worker, bufOld, p.row.Old),
		)
		ratios += sum
		advantages += sumLoop(gather(p.worker, bufAdvantages, p.row.Advantages))
	}
	n := float64(tokens)
	p.block.MeanLogRatio, p.block.MeanAdvantage = ratios/n, advantages/n
	p.suspect += ratios + advantages
	if m := p.job.objective.SequenceMask; m != nil {
		// Use the same sums as Prepare, so that a shrinking denominator counts exactly the rows that are kept.
		p.dropped = !m.Keep(rowMeans(*p.row))
	}
}

// evaluate does one block.
func (p *rowPass[T]) evaluate() {
	o := &p.job.objective
	b := &p.block
	b.Loss, b.Coef, b.scratch = p.buffer(bufLoss), p.buffer(bufCoef), p.buffer(bufScratch)
	if p.cotangents != nil {
		p.logProbs(o)
	}
	if p.row.Entropies != nil {
		p.entropy()
	}
	last := p.segments[len(p.segments)-1]
	p.written = last.from + last.n
}

// logProbs does the terms that depend on the log-probabilities.
func (p *rowPass[T]) logProbs(o *Objective) {
	b, scale := &p.block, p.policy
	b.LogProbs = gather(p.worker, bufLogProbs, p.row.LogProbs)
	if o.Policy != nil {
		p.surrogate(o)
	}
	switch {
	case o.KL == nil:
	case o.Policy == nil:
		scale = o.KL.Coefficient * p.rest
		p.penalty(o.KL, b.Coef)
	default:
		gradient := p.buffer(bufGradient)
		p.penalty(o.KL, gradient)
		scaleLoop(b.Coef, scale)
		scaleLoop(gradient, o.KL.Coefficient*p.rest)
		addLoop(b.Coef, gradient)
		scale = 1
	}
	p.scatter(p.cotangents, b.Coef, scale)
}

// finish turns the token sums into the row's contributions.
func (p *rowPass[T]) finish(tokens int) {
	s, n := &p.sum, p.copies
	s.policy, s.kl, s.entropy = p.loss*p.policy, p.kl*p.rest, p.ents*p.rest
	p.suspect += p.loss + p.kl + p.ents
	t := &s.tally
	t.Rows, t.Tokens, t.weight = 1, int64(tokens), n*float64(tokens)
	t.kl, t.entropy = n*p.kl, n*p.ents
	t.logMin, t.logMax = p.least, p.most
	if p.dropped {
		t.Dropped = 1
	}
	if !p.job.inputs.ratios() {
		return
	}
	t.absMax, t.ratios = max(p.most, -p.least), t.weight
	if bounds := p.job.objective.Policy.Bounds(); p.job.inputs.has(Sequence) && bounds.High > 0 {
		t.ratios = n
		t.outside.add(bounds.classify(SequenceRatio(p.block.MeanLogRatio), p.block.MeanAdvantage), n)
	}
}

// scatter writes a block's values times scale back to their tokens, and zeros to the tokens off the mask before them.
func (p *rowPass[T]) scatter(dst []T, src []float64, scale float64) {
	k, written := 0, p.written
	for _, s := range p.segments {
		clear(dst[written:s.from])
		written = s.from + s.n
		narrowLoop(dst[s.from:written], src[k:k+s.n], scale)
		k += s.n
	}
}
