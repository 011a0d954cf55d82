package diagnose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// families makes trajectories of a few kinds: those of one kind share all but one of 40 tokens.
func families(kinds, each int) (all []Written) {
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range kinds {
		for i := range each {
			w := Written{ID: fmt.Sprintf("%d/%d", k, i)}
			for t := range 40 {
				w.Tokens = append(w.Tokens, int32(1000*k+t))
			}
			w.Tokens[rng.IntN(40)] = int32(50_000 + rng.IntN(9))
			all = append(all, w)
		}
	}
	return all
}

// Trajectories of one kind are one cluster, those of different kinds are not, whatever the order.
func TestClustersAreTheKinds(t *testing.T) {
	all := families(3, 12)
	got := Clusters(all)
	if got.Clusters != 3 || got.Between < 4*got.Within {
		t.Fatalf("%d clusters, %g within, %g between; want 3 that lie apart", got.Clusters, got.Within, got.Between)
	}
	kind := map[int]byte{}
	for _, p := range got.Points {
		if p.Cluster < 0 {
			continue
		}
		if k, known := kind[p.Cluster]; known && k != p.ID[0] {
			t.Fatalf("cluster %d holds kinds %c and %c", p.Cluster, k, p.ID[0])
		}
		kind[p.Cluster] = p.ID[0]
	}
	if got.Alone > 0.2 || got.Explained < 0.5 || got.Explained > 1 {
		t.Fatalf("%g alone, %g explained", got.Alone, got.Explained)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if again := Clusters(all); !reflect.DeepEqual(got, again) {
			t.Fatal("the order changes the result")
		}
	}
}

// Worked by hand with radius 1.1: the points at 0 and 1.5 have two others near them and the middle ones three, so the
// four are one cluster; the four at 10 coincide; the last point is alone.
func TestScan(t *testing.T) {
	var points []ClusterPoint
	for _, x := range []float64{0, 0.5, 1, 1.5, 10, 10, 10, 10, 15} {
		points = append(points, ClusterPoint{X: x, Cluster: -1})
	}
	if n := findClusters(points, 1.1); n != 2 {
		t.Fatalf("%d clusters", n)
	}
	var got []int
	for _, p := range points {
		got = append(got, p.Cluster)
	}
	if want := []int{0, 0, 0, 0, 1, 1, 1, 1, -1}; !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	r := ClusterReport{Points: points, Clusters: 2}
	r.measure()
	// centres 0.75 and 10; distances 0.75, 0.25, 0.25, 0.75 and four times 0
	if math.Abs(r.Within-0.25) > 1e-12 || math.Abs(r.Between-9.25) > 1e-12 || math.Abs(r.Alone-1.0/9) > 1e-12 {
		t.Fatalf("%+v", r)
	}
	// Distances to the fourth nearest point: 1.5, 1, 1, 1.5, 0, 0, 0, 0, 5; the one at 0.9 · 8 = 7 is 1.5.
	if got := radiusOf(points); got != 1.5 {
		t.Fatalf("radius %g", got)
	}
}

// The first principal component of points on a line is the line.
func TestProjectFindsTheLine(t *testing.T) {
	var rows [][]float64
	for i := range 9 {
		r := make([]float64, embeddingWidth)
		r[3], r[7] = 3*float64(i), 4*float64(i)
		rows = append(rows, r)
	}
	x, y, explained := project(rows)
	for i := range rows {
		if math.Abs(x[i]-5*float64(i-4)) > 1e-9 || math.Abs(y[i]) > 1e-9 {
			t.Fatalf("point %d lies at %g, %g", i, x[i], y[i])
		}
	}
	if math.Abs(explained-1) > 1e-9 {
		t.Fatalf("explained %g", explained)
	}
}

func TestClustersOfLittle(t *testing.T) {
	for name, all := range map[string][]Written{
		"nothing": nil, "one": {{ID: "a", Tokens: []int32{1}}}, "no tokens": {{ID: "a"}, {ID: "b"}},
		"all alike": {{ID: "a", Tokens: []int32{1, 2}}, {ID: "b", Tokens: []int32{1, 2}},
			{ID: "c", Tokens: []int32{1, 2}}, {ID: "d", Tokens: []int32{1, 2}}},
	} {
		got := Clusters(all)
		noNaN(t, got)
		want := 0
		if name == "all alike" {
			want = 1
		}
		if got.Clusters != want {
			t.Errorf("%s: %d clusters", name, got.Clusters)
		}
	}
}
