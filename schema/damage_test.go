package schema

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCutAtEveryByte checks that a shard that lost its end is never read as a shorter one.
func TestCutAtEveryByte(t *testing.T) {
	for _, c := range tableCases() {
		t.Run(string(c.table), func(t *testing.T) {
			data := encodeFixture(c, 3, 3)
			for n := range data {
				_, err := c.decode(data[:n])
				require.ErrorIs(t, err, ErrCorrupt, "cut to %d of %d bytes", n, len(data))
			}
		})
	}
}

// TestFlippedBits checks that one wrong bit anywhere is noticed before anything is parsed.
func TestFlippedBits(t *testing.T) {
	for _, c := range tableCases() {
		t.Run(string(c.table), func(t *testing.T) {
			data := encodeFixture(c, 3, 3)
			for i := range 8 * len(data) {
				data[i/8] ^= 1 << (i % 8)
				_, err := c.decode(data)
				require.ErrorIs(t, err, ErrCorrupt, "bit %d of %d", i, 8*len(data))
				data[i/8] ^= 1 << (i % 8)
			}
		})
	}
}

func TestForeignBytes(t *testing.T) {
	for _, c := range tableCases() {
		for _, data := range [][]byte{nil, {}, []byte("PAR1"), []byte("PAR1PAR1"), []byte("ARROW1\x00\x00ARROW1"),
			[]byte("not a shard at all, only text")} {
			_, err := c.decode(data)
			require.ErrorIs(t, err, ErrCorrupt, "%s from %q", c.table, data)
		}
	}
}

// FuzzDecode looks for bytes that make decoding panic, or that decode although they are not a shard.
func FuzzDecode(f *testing.F) {
	cases := tableCases()
	for i, c := range cases {
		f.Add(uint8(i), encodeFixture(c, 3, 3))
		f.Add(uint8(i), []byte(sealMark+"a0b1c2d3"))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		c := cases[int(which)%len(cases)]
		rows, err := c.decode(data)
		if err != nil {
			return
		}
		again, err := c.encode(rows, rowGroupBytes)
		if err != nil {
			t.Fatalf("rows under a good seal are not valid: %v", err)
		}
		if _, err := c.decode(again); err != nil {
			t.Fatalf("rows that were read and written cannot be read: %v", err)
		}
	})
}

func TestPanicsOfTheLibrariesBecomeErrors(t *testing.T) {
	call := func() (err error) {
		defer recovered(Turns, &err)
		panic(fmt.Sprintf("index %d out of range", 7))
	}
	err := call()
	require.True(t, errors.Is(err, ErrCorrupt))
	require.ErrorContains(t, err, "decode table turns")
	require.ErrorContains(t, err, "index 7 out of range")
}
