// Command draw draws the panels of the dashboards from a Prometheus, as one SVG for each dashboard.
//
//	go run ./internal/dashboards/draw -prometheus http://127.0.0.1:9090 -for 15m -run RUN -out docs/monitoring
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/dashboards"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], time.Now(), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "draw: %v\n", err)
		os.Exit(1)
	}
}

// points is about how many points a line has.
const points = 60

// window is the $window of rates: a few scrapes, however short the time that is drawn.
const window = "1m"

func run(ctx context.Context, args []string, now time.Time, out io.Writer) error {
	flags := flag.NewFlagSet("draw", flag.ContinueOnError)
	address := flags.String("prometheus", "http://127.0.0.1:9090", "the Prometheus that is asked")
	back := flags.Duration("for", 15*time.Minute, "how far the figures reach back")
	name := flags.String("run", "", "the run of the dashboard about one run (default: the newest)")
	folder := flags.String("out", "docs/monitoring", "folder of the figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := prometheus{address: *address, from: now.Add(-*back), to: now}
	if *name == "" {
		newest, err := p.newestRun(ctx)
		if err != nil {
			return err
		}
		*name = newest
	}
	if err := os.MkdirAll(*folder, 0o755); err != nil {
		return err
	}
	for _, d := range dashboards.All() {
		panels, err := p.panels(ctx, d, *name)
		if err != nil {
			return err
		}
		path := filepath.Join(*folder, d.Name+".svg")
		if err := os.WriteFile(path, []byte(page(d.Title, panels)), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d of %d panels have data\n", path, len(panels), len(d.Panels))
	}
	return nil
}

// prometheus asks for a stretch of time.
type prometheus struct {
	address  string
	from, to time.Time
}

// series is what Prometheus returns: times in Unix seconds and values as texts.
type series struct {
	Metric map[string]string
	Values [][2]any
	Value  [2]any
}

func (p prometheus) ask(ctx context.Context, path string, parameters url.Values) ([]series, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+"/api/v1/"+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var got struct {
		Status, Error string
		Data          struct{ Result []series }
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", p.address, err)
	}
	if got.Status != "success" {
		return nil, fmt.Errorf("%s: %s", parameters.Get("query"), got.Error)
	}
	return got.Data.Result, nil
}

// newestRun names the run that was started last.
func (p prometheus) newestRun(ctx context.Context) (string, error) {
	all, err := p.ask(ctx, "query", url.Values{"query": {"topk(1, ropewalk_run_started_timestamp_seconds)"}})
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", errors.New("no open run is known to Prometheus; name one that has ended with -run")
	}
	return all[0].Metric["run"], nil
}

// panel is a figure with its lines.
type panel struct {
	dashboards.Panel
	lines []line
	span  float64 // seconds that the figure covers
}

// line is a series over the seconds since the figure's beginning.
type line struct {
	name string
	x, y []float64
}

// panels asks for the panels of a dashboard that have data.
func (p prometheus) panels(ctx context.Context, d dashboards.Dashboard, run string) (all []panel, _ error) {
	step := max(time.Second, p.to.Sub(p.from)/points)
	for _, declared := range d.Panels {
		drawn := panel{Panel: declared, span: p.to.Sub(p.from).Seconds()}
		for _, q := range declared.Queries {
			found, err := p.ask(ctx, "query_range", url.Values{"query": {q.For(run, window)},
				"start": {seconds(p.from)}, "end": {seconds(p.to)}, "step": {seconds(time.Unix(0, int64(step)))}})
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", d.Name, declared.Title, err)
			}
			for _, s := range found {
				if l := p.line(s, q.Legend); len(l.x) > 0 {
					drawn.lines = append(drawn.lines, l)
				}
			}
		}
		if len(drawn.lines) > 0 {
			slices.SortStableFunc(drawn.lines, func(a, b line) int { // the names of the highest lines are shown
				return cmp.Or(cmp.Compare(slices.Max(b.y), slices.Max(a.y)), cmp.Compare(a.name, b.name))
			})
			all = append(all, drawn)
		}
	}
	return all, nil
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

func (p prometheus) line(s series, legend string) line {
	l := line{name: legend}
	for label, value := range s.Metric {
		l.name = strings.ReplaceAll(l.name, "{{"+label+"}}", value)
	}
	for _, v := range s.Values {
		at, isNumber := v[0].(float64)
		text, isText := v[1].(string)
		y, err := strconv.ParseFloat(text, 64)
		if !isNumber || !isText || err != nil || math.IsNaN(y) || math.IsInf(y, 0) {
			continue
		}
		l.x = append(l.x, at-float64(p.from.UnixMilli())/1000)
		l.y = append(l.y, y)
	}
	return l
}
