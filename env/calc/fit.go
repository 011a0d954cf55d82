package calc

// exactDivision returns the ÷ of a tree, or nil if there is none.
func (n *node) exactDivision() *node {
	if n.isLeaf() {
		return nil
	}
	if n.op == opExact {
		return n
	}
	if d := n.left.exactDivision(); d != nil {
		return d
	}
	return n.right.exactDivision()
}

// fits reports whether the last operand of the dividend of n, a ÷, can nearly always be chosen so that the division
// leaves no remainder. The divisor must be a single operand. The dividend must be a single operand too, or end by
// adding, subtracting or multiplying by a single operand.
func (n *node) fits() bool {
	if !n.right.isLeaf() {
		return false
	}
	dividend := n.left
	return dividend.isLeaf() || (dividend.right.isLeaf() && dividend.op <= opMul)
}

// fitDividend changes operand, the last operand of the dividend, to the next value with the same number of digits for
// which the division leaves no remainder. The search goes up from the present value and then starts again at the lowest
// value. The present value was drawn uniformly.
func fitDividend(division, operand *node, digits int) bool {
	low := powerOfTen(digits - 1)
	high := 10 * low
	start := operand.value
	residue, modulus, err := congruence(division.left, operand, division.right.value)
	if err != nil {
		return false
	}
	return scan(division, operand, start, high, residue, modulus) ||
		scan(division, operand, low, start, residue, modulus)
}

// scan tries the values of a residue class in [from, to).
func scan(division, operand *node, from, to, residue, modulus int64) bool {
	for v := from + floorMod(residue-from, modulus); v < to; v += modulus {
		operand.value = v
		if _, err := division.eval(); err == nil {
			return true
		}
	}
	return false
}

// congruence returns the residue class of the operand's values for which dividend is a multiple of divisor. The
// dividend must satisfy fits.
func congruence(dividend, operand *node, divisor int64) (residue, modulus int64, err error) {
	if dividend == operand {
		return 0, divisor, nil
	}
	rest, err := dividend.left.eval()
	if err != nil {
		return 0, 0, err
	}
	switch dividend.op {
	case opAdd:
		return floorMod(-rest, divisor), divisor, nil
	case opSub:
		return floorMod(rest, divisor), divisor, nil
	}
	return 0, divisor / gcd(divisor, floorMod(rest, divisor)), nil
}

// floorMod is a mod m in [0, m), m > 0.
func floorMod(a, m int64) int64 { return ((a % m) + m) % m }

// gcd is the greatest common divisor of a > 0 and b ≥ 0.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
