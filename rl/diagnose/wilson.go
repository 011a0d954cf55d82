package diagnose

import "math"

// z95 is the 97.5% quantile of the normal distribution.
const z95 = 1.959963984540054

// Wilson returns the 95% score interval of a share of n trials (Wilson 1927). Unlike a bootstrap's, it has a width at
// shares of 0 and 1. No trials give the interval from 0 to 1.
func Wilson(share float64, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	trials := float64(n)
	centre := (share + z95*z95/(2*trials)) / (1 + z95*z95/trials)
	half := z95 / (1 + z95*z95/trials) * math.Sqrt(share*(1-share)/trials+z95*z95/(4*trials*trials))
	return max(0, centre-half), min(1, centre+half)
}
