package seed

import "testing"

func TestDeriveSeparatesLabelsAndCoordinates(t *testing.T) {
	seen := map[uint64]string{}
	add := func(name string, v uint64) {
		if other, ok := seen[v]; ok {
			t.Fatalf("%s and %s share seed %d", name, other, v)
		}
		seen[v] = name
	}
	add("a", Derive("a"))
	add("b", Derive("b"))
	add("a 0", Derive("a", 0))
	add("a 0 0", Derive("a", 0, 0))
	add("a 1 0", Derive("a", 1, 0))
	add("a 0 1", Derive("a", 0, 1))
}

func TestRandRepeats(t *testing.T) {
	x, y := Rand("sample", 1, 2, 3), Rand("sample", 1, 2, 3)
	for i := range 100 {
		if a, b := x.Uint64(), y.Uint64(); a != b {
			t.Fatalf("draw %d: %d != %d", i, a, b)
		}
	}
}
