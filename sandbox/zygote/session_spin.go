package zygote

import (
	"runtime"
	"time"
)

// spinTime is how long the parent polls for an answer before it blocks: waking up a blocked thread takes several times
// as long as a short cell.
const spinTime = 50 * time.Microsecond

// spin decides whether to spin, that is, to poll for an answer before blocking. It does not spin if the last spin
// was in vain, because the cell took long or the processors were busy. Skipping more than one spin would cost a session
// that runs alone more than it would give to those that share the processors. The interpreter polls for cells by the
// same rule (cells.py). Neither side spins while more cells run than there are processors (few is false): then there is
// always other work to do, and the runtime's own waiting wakes many goroutines at once.
type spin struct{ few, skip bool }

// fewCells is the number of running cells up to which spinning pays.
var fewCells = int32(runtime.NumCPU())

func (l *spin) due() bool {
	skip := l.skip
	l.skip = false
	return !skip
}

func (l *spin) learn(came bool) { l.skip = !came }
