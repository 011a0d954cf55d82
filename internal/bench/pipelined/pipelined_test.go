package pipelined

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
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

// By hand: medians of 3 and 2 seconds per step give 1.5, and the goal is on the medians alone.
func TestReport(t *testing.T) {
	r := &bench.Report{Dir: t.TempDir()}
	report(r, []float64{3, 4, 2.5}, []float64{2, 1, 2.5})
	require.Len(t, r.Rows, 4)
	require.Equal(t, bench.Row{What: "seed 3", Figures: []bench.Figure{bench.Of("s per step without a lag", 2.5),
		bench.Of("with one", 2.5), bench.Of("ratio", 1)}}, r.Rows[2])
	require.Equal(t, bench.Row{What: "median of each", Figures: []bench.Figure{bench.Of("s per step without a lag", 3),
		bench.Of("with one", 2), bench.Of("ratio", 1.5).AtLeast(1.25)}}, r.Rows[3])
	require.NoError(t, r.Missed())
}
