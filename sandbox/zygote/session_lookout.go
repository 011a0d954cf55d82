package zygote

import (
	"runtime"
	"time"
)

// lookOut is how long an answer is looked out for before it is waited for: to be woken takes several times as long as
// a short cell.
const lookOut = 50 * time.Microsecond

// lookout says whether it is worth while to look out for an answer: not when the last look was in vain, because the
// cell took long or the processors have other things to do. To skip more than one costs a session that is alone more
// than it gives those that share the processors. The interpreter looks out for cells by the same rule (cells.py).
// Neither looks out while more cells run than there are processors (few is false): then there is always
// something else to do, and the runtime's waiting wakes many at once.
type lookout struct{ few, skip bool }

// fewCells is up to how many cells at once looking out pays.
var fewCells = int32(runtime.NumCPU())

func (l *lookout) looks() bool {
	skip := l.skip
	l.skip = false
	return !skip
}

func (l *lookout) learn(came bool) { l.skip = !came }
