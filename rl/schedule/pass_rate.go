package schedule

// Filters of problems by pass rate: a problem stays iff least ≤ correct ≤ most out of `samples`
// attempts. rStar2-Agent uses it twice: stage 3 drops what the policy solves in 8 of 8 attempts
// (section 4.3), and the problem set itself keeps what a stronger model solves in at least 2 of 16
// (section 4.2). Departures: none.

import "fmt"

// PassRate keeps problems by how many of their attempts were correct. The zero value keeps all.
type PassRate struct {
	Samples int // attempts at each problem; 0 is no filter
	Least   int // correct attempts that a problem needs
	Most    int // correct attempts that it may have
}

// The two filters of rStar2-Agent.
var (
	HardProblems       = PassRate{Samples: 8, Least: 0, Most: 7}
	VerifiableProblems = PassRate{Samples: 16, Least: 2, Most: 16}
)

// Active reports whether there is a filter at all.
func (p PassRate) Active() bool { return p != PassRate{} }

// Validate reports the first bad field.
func (p PassRate) Validate() error {
	switch {
	case !p.Active():
		return nil
	case p.Samples < 1:
		return fmt.Errorf("samples must be ≥ 1, got %d", p.Samples)
	case p.Least < 0 || p.Least > p.Samples:
		return fmt.Errorf("least must lie in 0…%d, got %d", p.Samples, p.Least)
	case p.Most < p.Least || p.Most > p.Samples:
		return fmt.Errorf("most must lie in %d…%d, got %d", p.Least, p.Samples, p.Most)
	}
	return nil
}

// Keeps reports whether a problem with so many correct attempts stays: Least/Samples ≤
// correct/attempts ≤ Most/Samples, so that a problem some of whose attempts were excluded is held
// to the same shares. A problem without attempts stays, since nothing is known of it.
func (p PassRate) Keeps(correct, attempts int) (bool, error) {
	switch {
	case attempts < 0 || correct < 0 || correct > attempts:
		return false, fmt.Errorf("filter problem: impossible counts: %d correct of %d", correct, attempts)
	case !p.Active() || attempts == 0:
		return true, nil
	}
	share := correct * p.Samples
	return p.Least*attempts <= share && share <= p.Most*attempts, nil
}
