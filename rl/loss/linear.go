package loss

// Losses that are linear in what the policy gives, −logp, logp − ref and H, have the same cotangent at
// every token. They need no block: a sum over each run of tokens and a fill.

// linearTerms reports whether every term of the objective is linear.
func (o *Objective) linearTerms() bool {
	if o.Policy != nil {
		if _, ok := o.Policy.(BehaviourCloning); !ok {
			return false
		}
	}
	return o.KL == nil || o.KL.Estimator == K1
}

// linear evaluates a row of a linear objective.
func (p *rowPass[T]) linear() {
	o, r := &p.job.objective, p.row
	coef := 0.0
	if o.Policy != nil {
		coef -= p.policy
	}
	if o.KL != nil {
		coef += o.KL.Coefficient * p.rest
	}
	for t := 0; t < len(r.Mask); {
		from := t + runLoop(r.Mask[t:], 0)
		t = from + runLoop(r.Mask[from:], 1)
		if t == from {
			return
		}
		if p.cotangents != nil {
			logp := totalLoop(r.LogProbs[from:t])
			if o.Policy != nil {
				p.loss -= logp
			}
			if o.KL != nil {
				p.kl += logp - totalLoop(r.Ref[from:t])
			}
			p.suspect += logp
			clear(p.cotangents[p.written:from])
			fillLoop(p.cotangents[from:t], T(coef))
		}
		if r.Entropies != nil {
			p.ents += totalLoop(r.Entropies[from:t])
		}
		if p.entropies != nil {
			clear(p.entropies[p.written:from])
			fillLoop(p.entropies[from:t], p.bonus)
		}
		p.written = t
	}
}
