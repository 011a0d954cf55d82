package simulate

// prefilling marks a stretch of time in which an engine computes prefixes.
const prefilling = -1

// bins is how many stretches of time a picture shows.
const bins = 480

// usage records what every engine does, in stretches of time that double in width when the simulation grows longer.
type usage struct {
	width   float64     // seconds of a stretch
	rows    [][]float64 // [engine][stretch]: the rows that decode, integrated over time
	prefill [][]float64 // the seconds in which prefixes are computed
	busy    []float64   // seconds in which an engine decodes or computes prefixes
}

func newUsage(engines int) *usage {
	u := &usage{width: 1e-3, busy: make([]float64, engines)}
	for range engines {
		u.rows = append(u.rows, make([]float64, bins))
		u.prefill = append(u.prefill, make([]float64, bins))
	}
	return u
}

// add records rows from one moment to another, or prefilling.
func (u *usage) add(engine int, from, to, rows float64) {
	if to <= from || rows == 0 {
		return
	}
	for to > u.width*bins {
		u.double()
	}
	u.busy[engine] += to - from
	into, value := u.rows[engine], rows
	if rows == prefilling {
		into, value = u.prefill[engine], 1
	}
	for i := int(from / u.width); i < bins && from < to; i++ {
		end := min(float64(i+1)*u.width, to)
		if end > from {
			into[i] += value * (end - from)
			from = end
		}
	}
}

func (u *usage) double() {
	u.width *= 2
	for _, all := range [][][]float64{u.rows, u.prefill} {
		for _, line := range all {
			for i := range bins / 2 {
				line[i] = line[2*i] + line[2*i+1]
			}
			clear(line[bins/2:])
		}
	}
}
