package sandbox

import "context"

// Known answers the programs whose results are known without running them, and passes all others to Next. It saves a
// process for each of the many correct programs of a warm start. It is not for rollouts.
type Known struct {
	// Interpret returns what Python prints, and the value that a notebook shows, for a program that it knows.
	Interpret func(code string) (stdout, value string, known bool)
	Next      Executor
}

// Run answers calls in order. A failure of Next is an error.
func (k Known) Run(ctx context.Context, calls []Call) ([]Result, error) {
	results := make([]Result, len(calls))
	var rest []Call
	var places []int
	for i, c := range calls {
		stdout, value, known := k.Interpret(c.Code)
		if known {
			results[i] = Result{Status: StatusOK, Stdout: stdout, Value: value}
			continue
		}
		rest, places = append(rest, c), append(places, i)
	}
	if len(rest) == 0 {
		return results, nil
	}
	answers, err := k.Next.Run(ctx, rest)
	if err != nil {
		return nil, err
	}
	for j, i := range places {
		results[i] = answers[j]
	}
	return results, nil
}

// Close does nothing. The caller that opened Next closes it.
func (Known) Close() error { return nil }
