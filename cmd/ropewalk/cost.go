package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/runs"
)

// prices are what one of each costs, in any currency.
type prices struct {
	GB       float64 `json:"gb_month"` // 10⁹ bytes kept for a month
	Requests float64 `json:"million_requests"`
	CPU      float64 `json:"cpu_hour"`
	GPU      float64 `json:"gpu_hour"`
}

type costOptions struct {
	prices     prices
	prometheus string
	json       bool
}

func costCommand(con *console) *cobra.Command {
	o := costOptions{}
	cmd := &cobra.Command{
		Use:   "cost RUN",
		Short: "add up what a run has used: bytes, requests, CPU and GPU seconds",
		Long: "cost adds up what the record says that a run has used, in all and per 1,000 trajectories, and\n" +
			"multiplies it with the prices that are given. CPU time is that of the workers' processes; GPU\n" +
			"time is that of stages whose engine was on devices, times the engine's devices. Only the attempts\n" +
			"that committed are measured. The record does not know the requests to the store: --prometheus asks\n" +
			"a server that scrapes the workers for those of all processes while the run went on.",
		Example: "  ropewalk cost quickstart-s1-20260102-030405\n" +
			"  ropewalk cost quickstart-s1-20260102-030405 --price-gpu-hour 2.10 --price-gb-month 0.023\n" +
			"  ropewalk cost quickstart-s1-20260102-030405 --prometheus http://127.0.0.1:9090 --json",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), con, args[0]) },
	}
	f := cmd.Flags()
	f.Float64Var(&o.prices.GB, "price-gb-month", 0, "price of 10⁹ bytes kept for a month")
	f.Float64Var(&o.prices.Requests, "price-million-requests", 0, "price of a million requests to the store; needs "+
		"--prometheus")
	f.Float64Var(&o.prices.CPU, "price-cpu-hour", 0, "price of an hour of one processor core")
	f.Float64Var(&o.prices.GPU, "price-gpu-hour", 0, "price of an hour of one GPU")
	f.StringVar(&o.prometheus, "prometheus", "", "address of a Prometheus that scrapes the workers, for the requests")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

// costs is what a run has used, and what that costs.
type costs struct {
	analysis.Cost
	Requests *float64 `json:"requests"` // nil if no one was asked
	Prices   prices   `json:"prices"`
	// Computing is the price of processors, devices and requests; Keeping that of the bytes, for a month.
	Computing float64 `json:"computing"`
	Keeping   float64 `json:"keeping_month"`
}

func (o costOptions) run(ctx context.Context, con *console, run string) error {
	for flag, price := range map[string]float64{"gb-month": o.prices.GB, "million-requests": o.prices.Requests,
		"cpu-hour": o.prices.CPU, "gpu-hour": o.prices.GPU} {
		if price < 0 {
			return badInput("--price-%s: must be ≥ 0, got %v", flag, price)
		}
	}
	if o.prices.Requests > 0 && o.prometheus == "" {
		return badInput("--price-million-requests: the record does not know the requests; add --prometheus")
	}
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	out := costs{Prices: o.prices}
	if out.Cost, err = record.Cost(ctx, run); err != nil {
		return runs.Missing(err)
	}
	if o.prometheus != "" {
		n, err := requestsBetween(ctx, o.prometheus, out.From, out.To)
		if err != nil {
			return err
		}
		out.Requests = &n
	}
	out.price()
	if o.json {
		return con.printJSON(out)
	}
	return out.print(con.out)
}

func (c *costs) price() {
	c.Computing = c.CPUSeconds/3600*c.Prices.CPU + c.GPUSeconds/3600*c.Prices.GPU
	if c.Requests != nil {
		c.Computing += *c.Requests / 1e6 * c.Prices.Requests
	}
	c.Keeping = float64(c.Bytes) / 1e9 * c.Prices.GB
}

func (c costs) print(out io.Writer) error {
	fmt.Fprintf(out, "run %s: %d trajectories, %d activities in %s\n", c.Run, c.Trajectories, c.Activities,
		(time.Duration(c.Seconds) * time.Second).String())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tin all\tper 1,000 trajectories\t")
	line := func(name, format string, x float64) {
		per := "–"
		if c.Trajectories > 0 {
			per = fmt.Sprintf(format, x*1000/float64(c.Trajectories))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", name, fmt.Sprintf(format, x), per)
	}
	line("objects", "%.0f", float64(c.Objects))
	line("bytes", "%.0f", float64(c.Bytes))
	line("CPU seconds", "%.1f", c.CPUSeconds)
	line("GPU seconds", "%.1f", c.GPUSeconds)
	if c.Requests != nil {
		line("requests of all processes", "%.0f", *c.Requests)
	}
	if c.Prices != (prices{}) {
		line("price of computing", "%.4f", c.Computing)
		line("price of keeping it for a month", "%.4f", c.Keeping)
	}
	return w.Flush()
}

// requestsBetween asks a Prometheus how many requests to the store all scraped processes have made in a time.
func requestsBetween(ctx context.Context, server string, from, to time.Time) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	seconds := max(int(to.Sub(from).Seconds())+1, 1)
	query := url.Values{"time": {strconv.FormatInt(to.Unix()+1, 10)},
		"query": {fmt.Sprintf("sum(increase(ropewalk_store_requests_total[%ds]))", seconds)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/query?"+query.Encode(), nil)
	if err != nil {
		return 0, badInput("--prometheus: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("--prometheus: ask for the requests: %w", err)
	}
	defer resp.Body.Close()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil {
		return 0, badInput("--prometheus: %s does not answer as a Prometheus does: %w", server, err)
	}
	if answer.Error != "" {
		return 0, fmt.Errorf("--prometheus: %s", answer.Error)
	}
	if len(answer.Data.Result) == 0 {
		return 0, badInput("--prometheus: %s has no requests of workers between %s and %s", server,
			from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("--prometheus: read the number of requests: %w", err)
	}
	return n, nil
}
