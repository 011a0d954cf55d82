package checkpoint

// delta is what a LoRA adapter adds to a weight of [out, in]: scale·b·a, with b [out, rank] and a [rank, in].
type delta struct {
	a, b     []float32
	rank, in int
	scale    float32
}

// add adds the part of the product that belongs to numbers, which are the weight's from index at on. Every number is
// the same whichever way the weight is cut into parts.
func (d *delta) add(at int, numbers []float32) {
	for len(numbers) > 0 {
		o, from := at/d.in, at%d.in
		n := min(d.in-from, len(numbers))
		row := numbers[:n]
		for r := range d.rank {
			f := d.scale * d.b[o*d.rank+r]
			for i, x := range d.a[r*d.in+from : r*d.in+from+n] {
				row[i] += f * x
			}
		}
		at, numbers = at+n, numbers[n:]
	}
}
