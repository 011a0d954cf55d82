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

// TestFigures: by hand, medians of 3 and 2 seconds per step give 1.5.
func TestFigures(t *testing.T) {
	of := func(lag, seed int, seconds float64) trial {
		return trial{Lag: lag, Seed: seed, Steps: 2, RLSeconds: seconds}
	}
	all := []trial{of(0, 1, 6), of(1, 1, 4), of(0, 2, 8), of(1, 2, 2), of(0, 3, 5), of(1, 3, 5)}
	require.InDelta(t, 1.5, ratio(all), 1e-12)
	require.Zero(t, ratio(all[:1]))
	require.Contains(t, table(all), "a step without a lag takes 1.50 times as long")
}
