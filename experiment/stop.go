package experiment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Judge applies the stop rule after a step to the trials that still run, and says which of them end, and why. Means of
// an arm are over its trials that have come so far; a trial without the outcome does not end.
func (f *File) Judge(step int, trials []Observed) map[string]string {
	out := map[string]string{}
	if o, ok := f.outcome(f.Stop.Collapse); ok {
		for _, t := range trials {
			if v, known := f.upTo(step, t, o); known && v < f.Stop.Below {
				out[t.Run] = fmt.Sprintf("%s was %.4g after step %d, below %g", o.Name, v, step, f.Stop.Below)
			}
		}
	}
	if o, ok := f.outcome(f.Stop.By); ok {
		f.halve(step, trials, o, out)
	}
	return out
}

// Ranked returns the curve of a result by which the stop rule ranks arms, as Rival reads it; null if it ranks none.
func (f *File) Ranked(r *Result) (json.RawMessage, error) {
	o, _ := f.outcome(f.Stop.By)
	return json.Marshal(r.Curves[o.ID()])
}

// Rival is a trial of which the stop rule knows a curve alone.
func (f *File) Rival(t Trial, ranked json.RawMessage) (Observed, error) {
	var c Curve
	if err := json.Unmarshal(ranked, &c); err != nil {
		return Observed{}, fmt.Errorf("read the curve of trial %s: %w", t.Run, err)
	}
	o, _ := f.outcome(f.Stop.By)
	return Observed{Trial: t, Result: &Result{Curves: map[string]Curve{o.ID(): c}}}, nil
}

// halve ends the arms whose mean outcome is not among the best.
func (f *File) halve(step int, trials []Observed, o Outcome, out map[string]string) {
	type ranked struct {
		arm   string
		value float64
	}
	var all []ranked
	values := map[string][]float64{}
	for _, t := range trials {
		if out[t.Run] != "" {
			continue
		}
		v, known := f.upTo(step, t, o)
		if !known {
			continue
		}
		if values[t.Arm] == nil {
			all = append(all, ranked{arm: t.Arm})
		}
		values[t.Arm] = append(values[t.Arm], v)
	}
	for i := range all {
		all[i].value = student(values[all[i].arm]).Mean
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(b.value, a.value) })
	keep := int(math.Ceil(f.Stop.Keep * float64(len(all))))
	for i := keep; i < len(all); i++ {
		for _, t := range trials {
			if t.Arm == all[i].arm && out[t.Run] == "" {
				out[t.Run] = fmt.Sprintf("%s of its arm was %.4g after step %d, rank %d of %d", o.Name, all[i].value,
					step, i+1, len(all))
			}
		}
	}
}

// upTo is an outcome of a trial's first steps.
func (f *File) upTo(step int, t Observed, o Outcome) (float64, bool) {
	if t.Result == nil {
		return 0, false
	}
	return o.value(t.Result.over(o, AxisSteps), float64(step))
}
