package loss

// The terms of an objective over one block: the surrogate with its statistics and weights, the KL
// penalty, the entropy.

// surrogate evaluates the policy loss and leaves the block's coefficients in Coef.
func (p *rowPass[T]) surrogate(o *Objective) {
	b, in := &p.block, p.job.inputs
	if in.has(Behaviour) {
		p.behaviour(in)
	}
	if in.has(Marked) {
		p.gatherMarks()
	}
	o.Policy.Evaluate(b)
	if o.TIS != nil {
		p.weigh(o.TIS)
	}
	sum := sumLoop(b.Loss)
	p.suspect += sum
	if p.dropped {
		clear(b.Coef)
		return
	}
	p.loss += sum
}

// behaviour gathers the inputs of the ratio and counts statistics.
func (p *rowPass[T]) behaviour(in Inputs) {
	b := &p.block
	b.Old = gather(p.worker, bufOld, p.row.Old)
	b.Advantages = gather(p.worker, bufAdvantages, p.row.Advantages)
	b.LogRatio, b.Ratio = p.buffer(bufLogRatio), p.buffer(bufRatio)
	if in.has(values) {
		p.suspect += sumLoop(b.Old)
		return
	}
	sum, least, most := subLoop(b.LogRatio, b.LogProbs, b.Old)
	b.least, b.greatest = least, most
	p.sum.tally.drift += p.copies * sum
	p.suspect += sum
	p.least, p.most = min(p.least, least), max(p.most, most)
	p.greatestOld = max(p.greatestOld, maxLoop(b.Old))
	if !in.has(Ratios) {
		return
	}
	expLoop(b.Ratio, b.LogRatio, LogRatioClamp)
	if bounds := p.job.objective.Policy.Bounds(); bounds.High > 0 {
		p.sum.tally.outside.add(outsideLoop(b.Ratio, b.Advantages, bounds), p.copies)
	}
}

func (p *rowPass[T]) gatherMarks() {
	k := 0
	p.block.Marks = p.marks[:p.tokens]
	for _, s := range p.segments {
		k += copy(p.block.Marks[k:], p.row.Marks[s.from:s.from+s.n])
	}
	n, _ := maskLoop(p.block.Marks)
	p.sum.tally.marked += p.copies * float64(n)
}

// weigh multiplies losses and coefficients by the weights of truncated importance sampling.
func (p *rowPass[T]) weigh(tis *TIS) {
	b, weights := &p.block, p.buffer(bufDelta)
	sum, _, _ := subLoop(weights, b.Old, gather(p.worker, bufOther, p.row.Rollout))
	p.suspect += sum
	expLoop(weights, weights, LogRatioClamp)
	capped := 0.0
	for t, v := range weights {
		if v > tis.Cap {
			weights[t] = tis.Cap
			capped++
		}
	}
	p.sum.tally.capped += p.copies * capped
	p.sum.tally.tis += p.copies * sumLoop(weights)
	mulLoop(b.Loss, b.Loss, weights)
	mulLoop(b.Coef, b.Coef, weights)
}

// penalty evaluates the KL penalty and writes its derivative to gradient.
func (p *rowPass[T]) penalty(k *KL, gradient []float64) {
	b, delta, value := &p.block, p.buffer(bufDelta), p.buffer(bufScratch)
	sum, _, _ := subLoop(delta, b.LogProbs, gather(p.worker, bufOther, p.row.Ref))
	p.suspect += sum
	k.estimate(delta, value, gradient)
	p.kl += sumLoop(value)
}

// entropy adds up the block's entropies; their cotangent is the same for each.
func (p *rowPass[T]) entropy() {
	written := p.written
	for _, s := range p.segments {
		p.entropyRun(written, s.from, s.from+s.n)
		written = s.from + s.n
	}
}
