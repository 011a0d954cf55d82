package diagnose

// The faults of the trajectories that RoC chooses from (rStar2-Agent section 3.2): means of its two penalties,
// p_err and p_format, and how many answers a trajectory gives: none, one (as required) or several. Departures:
// none. Package resample computes the penalties.

import "fmt"

// Quality holds the inputs of RoC for one trajectory.
type Quality struct {
	Error   float64 // p_err of [0, 1]
	Format  float64 // p_format of [0, 1]
	Answers int     // closed answer pairs
	Kept    bool    // RoC keeps the trajectory
}

// Qualities gathers a step's trajectories.
type Qualities struct {
	all, kept       penalties
	none, one, more int
}

type penalties struct{ err, format series }

func (p *penalties) add(q Quality) {
	p.err.add(q.Error)
	p.format.add(q.Format)
}

// QualityReport holds means over trajectories and the shares by number of answers.
type QualityReport struct {
	Trajectories, Kept           int
	Error, Format                float64 // means over all trajectories
	KeptError, KeptFormat        float64 // means over those kept
	NoAnswer, OneAnswer, Several float64 // shares of all trajectories; they add up to 1
}

// Add adds trajectories. If one is refused, none is added.
func (q *Qualities) Add(trajectories ...Quality) error {
	for i, t := range trajectories {
		if !(t.Error >= 0 && t.Error <= 1) || !(t.Format >= 0 && t.Format <= 1) || t.Answers < 0 {
			return fmt.Errorf(
				"%w: trajectory %d has p_err %g, p_format %g and %d answers", ErrBadInput, i, t.Error, t.Format,
				t.Answers,
			)
		}
	}
	for _, t := range trajectories {
		q.all.add(t)
		if t.Kept {
			q.kept.add(t)
		}
		switch t.Answers {
		case 0:
			q.none++
		case 1:
			q.one++
		default:
			q.more++
		}
	}
	return nil
}

// Merge adds another shard's trajectories.
func (q *Qualities) Merge(o *Qualities) {
	q.all.err.merge(&o.all.err)
	q.all.format.merge(&o.all.format)
	q.kept.err.merge(&o.kept.err)
	q.kept.format.merge(&o.kept.format)
	q.none += o.none
	q.one += o.one
	q.more += o.more
}

// Report returns means and shares.
func (q *Qualities) Report() QualityReport {
	n := q.all.err.N
	return QualityReport{
		Trajectories: n, Kept: q.kept.err.N,
		Error: q.all.err.Mean(), Format: q.all.format.Mean(),
		KeptError: q.kept.err.Mean(), KeptFormat: q.kept.format.Mean(),
		NoAnswer: share(q.none, n), OneAnswer: share(q.one, n), Several: share(q.more, n),
	}
}
