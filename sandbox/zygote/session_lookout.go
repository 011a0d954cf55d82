package zygote

import "time"

// lookOut is how long an answer is looked out for before it is waited for: to be woken takes several times as long as
// a short cell.
const lookOut = 50 * time.Microsecond

// mostSkipped bounds how many answers in a row are not looked out for.
const mostSkipped = 64

// lookout says whether it is worth while to look out for an answer, by whether it was: each time that it was not,
// because the cell took long or the processors have other things to do, twice as many are waited for without a look.
// The interpreter looks out for cells by the same rule (cells.py).
type lookout struct {
	skip  int // how many are not looked out for
	width int // how many that will be after the next miss; 0 is 1
}

func (l *lookout) looks() bool {
	if l.skip > 0 {
		l.skip--
		return false
	}
	return true
}

func (l *lookout) learn(came bool) {
	if came {
		l.width = 1
		return
	}
	l.width = max(l.width, 1)
	l.skip, l.width = l.width, min(2*l.width, mostSkipped)
}
