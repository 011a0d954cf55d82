package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
)

func TestCostsInAllAndPerThousandTrajectories(t *testing.T) {
	n := 2e6
	c := costs{
		Cost: analysis.Cost{Run: "r", Trajectories: 2000, Objects: 10, Bytes: 5e9, Seconds: 90, Activities: 7,
			CPUSeconds: 7200, GPUSeconds: 1800},
		Requests: &n, Prices: prices{GB: 0.02, Requests: 0.4, CPU: 0.05, GPU: 2},
	}
	c.price()
	require.InDelta(t, 2*0.05+0.5*2+2*0.4, c.Computing, 1e-12)
	require.InDelta(t, 0.1, c.Keeping, 1e-12)
	var out bytes.Buffer
	require.NoError(t, c.print(&out))
	require.Equal(t, `run r: 2000 trajectories, 7 activities in 1m30s
                                       in all  per 1,000 trajectories
                          objects          10                       5
                            bytes  5000000000              2500000000
                      CPU seconds      7200.0                  3600.0
                      GPU seconds      1800.0                   900.0
        requests of all processes     2000000                 1000000
               price of computing      1.9000                  0.9500
  price of keeping it for a month      0.1000                  0.0500
`, out.String())
}

func TestRequestsAreAskedOfPrometheus(t *testing.T) {
	answer := `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[101,"12.5"]}]}}`
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + " " + r.URL.Query().Get("query") + " " + r.URL.Query().Get("time")
		_, _ = w.Write([]byte(answer))
	}))
	defer s.Close()
	n, err := requestsBetween(t.Context(), s.URL, time.Unix(40, 0), time.Unix(100, 0))
	require.NoError(t, err)
	require.Equal(t, 12.5, n)
	require.Equal(t, "/api/v1/query sum(increase(ropewalk_store_requests_total[61s])) 101", asked)
	for text, want := range map[string]string{
		`{"status":"success","data":{"result":[]}}`:  "has no requests of workers between",
		`{"status":"error","error":"too many"}`:      "too many",
		`<html>`:                                     "does not answer as a Prometheus does",
		`{"data":{"result":[{"value":[1,"many"]}]}}`: "read the number of requests",
	} {
		answer = text
		_, err := requestsBetween(t.Context(), s.URL, time.Unix(40, 0), time.Unix(100, 0))
		require.ErrorContains(t, err, want)
	}
}
