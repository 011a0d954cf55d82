package serve

import (
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// readBytes is the memory that reading reads: far more than caches hold.
const readBytes = 512 << 20

// reading measures how many GB the threads read in a second, each a piece of memory from its beginning to its end. It
// is the median of the rounds.
func reading(threads, rounds int) float64 {
	memory := make([]uint64, readBytes/8)
	for i := range memory {
		memory[i] = uint64(i)
	}
	sums := make([]uint64, threads)
	var rates []float64
	for range max(rounds, 3) {
		began := time.Now()
		var all sync.WaitGroup
		for t := range threads {
			all.Go(func() { sums[t] += sum(memory[len(memory)*t/threads : len(memory)*(t+1)/threads]) })
		}
		all.Wait()
		rates = append(rates, readBytes/time.Since(began).Seconds()/1e9)
	}
	return bench.Median(rates)
}

// sum adds in several lanes, so that no addition waits for the one before.
func sum(a []uint64) uint64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 uint64
	for ; len(a) >= 8; a = a[8:] {
		s0 += a[0]
		s1 += a[1]
		s2 += a[2]
		s3 += a[3]
		s4 += a[4]
		s5 += a[5]
		s6 += a[6]
		s7 += a[7]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}
