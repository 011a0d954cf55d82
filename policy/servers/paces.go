package servers

// paces learns how long a server takes for a token of a prefix and for one of a response: the least squares of the
// times of its responses, of which old ones count less and less.
type paces struct {
	prefixes, both, tokens   float64 // sums of the squares and of the products of the two numbers of tokens
	prefixTimes, tokensTimes float64 // and of each number and the seconds
	perToken                 float64 // mean of the seconds for each token of a response; 0 = not known
}

// fade is the weight of what was known, whenever something is learnt.
const fade = 0.98

// learn counts a response: so many tokens of a prefix that were not cached, so many tokens, in so many seconds.
func (p *paces) learn(prefix, tokens, seconds float64) {
	add := func(to *float64, x float64) { *to = fade**to + x }
	add(&p.prefixes, prefix*prefix)
	add(&p.both, prefix*tokens)
	add(&p.tokens, tokens*tokens)
	add(&p.prefixTimes, prefix*seconds)
	add(&p.tokensTimes, tokens*seconds)
	if p.perToken == 0 {
		p.perToken = seconds / max(tokens, 1)
	}
	p.perToken += 0.1 * (seconds/max(tokens, 1) - p.perToken)
}

// prefill is how many tokens of a prefix the server computes a second; 0 = not known.
func (p *paces) prefill() float64 {
	det := p.prefixes*p.tokens - p.both*p.both
	if !(det > 1e-3*p.prefixes*p.tokens) { // all responses were alike, and tell nothing
		return 0
	}
	perPrefix := (p.prefixTimes*p.tokens - p.tokensTimes*p.both) / det
	if !(perPrefix > 1e-7) {
		return 0
	}
	return 1 / perPrefix
}

// least is a lower bound of the seconds for each token of a row that has not ended.
func (p *paces) least(prefix, budget, seconds float64) float64 {
	if prefill := p.prefill(); prefill > 0 {
		return max(0, seconds-prefix/prefill) / max(budget, 1)
	}
	return seconds / max(prefix+budget, 1)
}
