package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDelay: everything arrives, in order, and no earlier than the delay after it was sent.
func TestDelay(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	const late = 100 * time.Millisecond
	d, err := delayed(server.Addr().String())
	require.NoError(t, err)
	defer d.close()
	d.late.Store(int64(late))
	c, err := net.Dial("tcp", d.address())
	require.NoError(t, err)
	defer c.Close()
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(i * 7)
	}
	began := time.Now()
	go func() {
		_, _ = c.Write(want)
	}()
	got := make([]byte, len(want))
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.GreaterOrEqual(t, time.Since(began), late)
}

// TestFigures: by hand, medians of 3 and 2 seconds per step give 1.5; success differs by −2 and +4 points.
func TestFigures(t *testing.T) {
	of := func(wait float64, lag, seed int, seconds, success float64) (out trial) {
		out = trial{Wait: wait, Lag: lag, Seed: seed, Steps: 2, RLSeconds: seconds}
		out.Final.Success = success
		return out
	}
	all := []trial{of(0.2, 0, 1, 6, 0), of(0.2, 1, 1, 4, 0), of(0.2, 0, 2, 8, 0), of(0.2, 1, 2, 2, 0),
		of(0.2, 0, 3, 5, 0), of(0.2, 1, 3, 5, 0)}
	require.InDelta(t, 1.5, ratio(all, 0.2), 1e-12)
	require.Zero(t, ratio(all, 0))
	require.Nil(t, success(all))
	all = append(all, of(0, 0, 1, 4, 0.7), of(0, 1, 1, 4, 0.68), of(0, 0, 2, 4, 0.7), of(0, 1, 2, 4, 0.74))
	require.InDelta(t, 1, success(all).Mean, 1e-9)
	require.Contains(t, table(all), "a step without a lag takes 1.50 times as long")
	require.Contains(t, table(all), "success with a lag, less that without: +1.0 [")
}
