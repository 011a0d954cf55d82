package metrics

import (
	"context"
	_ "embed" // for metrics.json
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
)

//go:embed metrics.json
var metricsJSON []byte

// Metric declares one metric.
type Metric struct {
	Name   string `json:"name"`
	Source string `json:"source"` // a table, or a key of sources
	Value  string `json:"value"`  // an aggregate over the source's rows of a step
	Doc    string `json:"doc"`
}

// declared is metrics.json.
var declared = func() (out struct {
	Sources map[string]string `json:"sources"`
	Clock   string            `json:"clock"`
	Metrics []Metric          `json:"metrics"`
}) {
	if err := json.Unmarshal(metricsJSON, &out); err != nil {
		panic("metrics.json: " + err.Error())
	}
	return out
}()

// List returns the declarations of all metrics.
func List() []Metric { return slices.Clone(declared.Metrics) }

// Query is the query for a declared metric of one run: the columns step and value.
func Query(name string) string {
	i := slices.IndexFunc(declared.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		panic("there is no metric " + name)
	}
	return declared.Metrics[i].query()
}

// query asks for a metric's value at each step that has one.
func (m Metric) query() string {
	source, ok := declared.Sources[m.Source]
	if !ok {
		source = "select * from " + m.Source
	}
	return fmt.Sprintf("select coalesce(step, 0) as step, cast(%s as double) as value from (%s) as rows "+
		"group by 1 having value is not null order by 1", m.Value, source)
}

// Step holds the values of one step.
type Step struct {
	Step   int
	Time   time.Time
	Values []Value // in the order of the declarations
}

// Value is a metric's value at a step.
type Value struct {
	Name  string
	Value float64
}

// ErrNone means that a run has no metrics yet.
var ErrNone = errors.New("the run has no finished step and no evaluation yet")

// Compute reads a run's metrics as its heads name them, in the order of the steps.
func Compute(ctx context.Context, record *analysis.Record, name string) (steps []Step, err error) {
	run, err := record.Run(ctx, name)
	if err != nil {
		return nil, err
	}
	queries := []string{declared.Clock}
	for _, m := range declared.Metrics {
		queries = append(queries, m.query())
	}
	session, err := sql.Open(ctx, record, []string{name}, queries...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	values := map[int][]Value{}
	for i, m := range declared.Metrics {
		of, err := ask(ctx, session, queries[i+1])
		if err != nil {
			return nil, fmt.Errorf("compute %s: %w", m.Name, err)
		}
		for _, p := range of {
			values[p.step] = append(values[p.step], Value{m.Name, p.value})
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNone, name)
	}
	ends, err := ask(ctx, session, declared.Clock)
	if err != nil {
		return nil, fmt.Errorf("read the times of the steps: %w", err)
	}
	return timed(values, ends, run.Created)
}

// point is a number at a step.
type point struct {
	step  int
	value float64
}

func ask(ctx context.Context, session *sql.Session, query string) ([]point, error) {
	answer, err := session.Ask(ctx, query)
	if err != nil {
		return nil, err
	}
	out := make([]point, len(answer.Rows))
	for i, row := range answer.Rows {
		step, err := number(row[0])
		if err != nil {
			return nil, err
		}
		value, err := number(row[1])
		if err != nil {
			return nil, err
		}
		out[i] = point{int(step), value}
	}
	return out, nil
}

// number reads a cell; DuckDB's answers hold infinities and NaN as texts.
func number(cell any) (float64, error) {
	return strconv.ParseFloat(fmt.Sprint(cell), 64)
}

// timed orders the steps and gives each its time by the clock, at least that of the step before it. A step without
// measured times has the time of the step before it, and the first one that of the run's creation.
func timed(values map[int][]Value, clock []point, created string) ([]Step, error) {
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		return nil, fmt.Errorf("read the time of the run's creation: %w", err)
	}
	var out []Step
	for _, step := range slices.Sorted(maps.Keys(values)) {
		for _, c := range clock {
			if end := time.UnixMicro(int64(math.Round(c.value * 1e6))); c.step == step && end.After(at) {
				at = end
			}
		}
		out = append(out, Step{step, at, values[step]})
	}
	return out, nil
}
