package advantage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// bruteRatio is the definition: every pair of places tried for the longest block, left and right of it
// by recursion.
func bruteRatio(a, b []rune, autojunk bool) float64 {
	if len(a)+len(b) == 0 {
		return 1
	}
	count := map[rune]int{}
	for _, c := range b {
		count[c]++
	}
	starts := func(c rune) bool {
		return !autojunk || len(b) < 200 || count[c] <= len(b)/100+1
	}
	return 2 * float64(bruteMatches(a, b, starts)) / float64(len(a)+len(b))
}

func bruteMatches(a, b []rune, starts func(rune) bool) int {
	i, j, k := 0, 0, 0
	for x := range a {
		for y := range b {
			n := 0
			for x+n < len(a) && y+n < len(b) && a[x+n] == b[y+n] && starts(a[x+n]) {
				n++
			}
			if n > k {
				i, j, k = x, y, n
			}
		}
	}
	for i > 0 && j > 0 && a[i-1] == b[j-1] {
		i, j, k = i-1, j-1, k+1
	}
	for i+k < len(a) && j+k < len(b) && a[i+k] == b[j+k] {
		k++
	}
	if k == 0 {
		return 0
	}
	return bruteMatches(a[:i], b[:j], starts) + k + bruteMatches(a[i+k:], b[j+k:], starts)
}

// bruteLCS is the table of the longest common subsequence.
func bruteLCS(a, b []rune) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// checkSimilarity holds the ratio against its definition and the bounds against the ratio.
func checkSimilarity(t *testing.T, a, b string) {
	t.Helper()
	for _, off := range []bool{false, true} {
		want := bruteRatio([]rune(a), []rune(b), !off)
		if got := (RatcliffObershelp{NoAutojunk: off}).Ratio(a, b); got != want {
			t.Fatalf("autojunk off %v: ratio(%q, %q) = %v, want %v", off, a, b, got, want)
		}
		m := newMatcher(RatcliffObershelp{NoAutojunk: off})
		x, y := m.encode(a), m.encode(b)
		matches := m.matches(x, y)
		lcs, counts, length := m.lcs(x, y), countBound(x, y), lengthBound(x, y)
		if lcs != bruteLCS([]rune(a), []rune(b)) {
			t.Fatalf("longest common subsequence of %q and %q = %d, want %d", a, b, lcs, bruteLCS([]rune(a), []rune(b)))
		}
		if matches > lcs || lcs > counts || counts > length {
			t.Fatalf("%q and %q: matches %d, bounds %d, %d, %d", a, b, matches, lcs, counts, length)
		}
		for _, threshold := range []float64{0.5, 0.9, 0.95, want} {
			if got := m.ratioAtLeast(x, y, threshold); got != (want >= threshold) {
				t.Fatalf("%q and %q at %v: %v, ratio %v", a, b, threshold, got, want)
			}
		}
	}
}

// randomPair draws two texts; the second is often the first with some edits, as observations are.
func randomPair(rng *rand.Rand) (a, b string) {
	alphabets := [][]rune{[]rune("ab"), []rune("abcdefgh "), []rune("etaoin shrdlu123.,"), []rune("a字é😀 \x00\n\"\\")}
	alphabet := alphabets[rng.IntN(len(alphabets))]
	draw := func(n int) []rune {
		out := make([]rune, n)
		for i := range out {
			out[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return out
	}
	lengths := []int{0, 5, 60, 199, 201, 260}
	first := draw(rng.IntN(lengths[rng.IntN(len(lengths))] + 1))
	second := draw(rng.IntN(lengths[rng.IntN(len(lengths))] + 1))
	if rng.IntN(3) > 0 {
		second = slices.Clone(first)
		for range rng.IntN(12) {
			at := rng.IntN(len(second) + 1)
			if to := min(len(second), at+rng.IntN(4)); rng.IntN(2) == 0 {
				second = slices.Delete(second, at, to)
			} else {
				second = slices.Insert(second, at, draw(rng.IntN(4))...)
			}
		}
	}
	return string(first), string(second)
}

func TestRatioAgreesWithItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for range 40 {
		checkSimilarity(t, first(randomPair(rng)), second(randomPair(rng)))
		a, b := randomPair(rng)
		checkSimilarity(t, a, b)
	}
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }

func TestRatioOfLongTexts(t *testing.T) {
	long := strings.Repeat("a", 300)
	for _, tt := range []struct {
		a, b string
		want float64
	}{
		{long, long, 1}, // nothing may start a block, yet the empty block at the start is lengthened
		{"b" + long, "c" + long, 0},
		{"xy" + long, "xy" + long, 1},
		{"", long, 0},
		{"\xff", "\xfe", 1}, // both are U+FFFD
	} {
		if got := (RatcliffObershelp{}).Ratio(tt.a, tt.b); got != tt.want {
			t.Errorf("ratio of %.10q… and %.10q… = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestMatcherOutlivesItsStamps(t *testing.T) {
	m := newMatcher(RatcliffObershelp{})
	a, b := m.encode("the quick brown fox"), m.encode("a quick brown dog")
	want := m.ratio(a, b)
	m.stamp = 1<<30 - 3
	for range 4 {
		if got := m.ratio(a, b); got != want {
			t.Fatalf("ratio changed from %v to %v", want, got)
		}
	}
	if m.stamp > 1<<20 {
		t.Error("the stamps were not started again")
	}
}

func FuzzRatcliffObershelp(f *testing.F) {
	f.Add("tide", "diet")
	f.Add("", "")
	f.Add(strings.Repeat("ab", 150), strings.Repeat("ba", 120)+"c")
	f.Add("字字é", "é字")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 260 || len(b) > 260 { // the definition takes cubic time
			t.Skip()
		}
		checkSimilarity(t, a, b)
	})
}

// difflibScript answers each line, a pair, with its two ratios.
const difflibScript = `
import difflib, json, sys
for line in sys.stdin:
    a, b = json.loads(line)
    print(json.dumps([difflib.SequenceMatcher(None, a, b, autojunk=j).ratio() for j in (True, False)]))
`

func TestRatioAgreesWithDifflib(t *testing.T) {
	interpreter := pythontest.Need(t, "PYTHON")
	rng := rand.New(rand.NewPCG(53, 54))
	var pairs [][2]string
	var input bytes.Buffer
	for len(pairs) < 600 {
		a, b := randomPair(rng)
		if len(pairs)%3 == 0 {
			a, b = observation(rng), observation(rng)
		}
		pairs = append(pairs, [2]string{a, b})
		line, err := json.Marshal(pairs[len(pairs)-1])
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(line, '\n'))
	}
	cmd := exec.Command(interpreter, "-c", difflibScript)
	cmd.Stdin, cmd.Stderr = &input, os.Stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("run difflib: %v", err)
	}
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	if len(lines) != len(pairs) {
		t.Fatalf("difflib answered %d of %d pairs", len(lines), len(pairs))
	}
	differ := 0
	for k, line := range lines {
		var want [2]float64
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		a, b := pairs[k][0], pairs[k][1]
		got := [2]float64{RatcliffObershelp{}.Ratio(a, b), RatcliffObershelp{NoAutojunk: true}.Ratio(a, b)}
		if got != want {
			t.Errorf("ratios of %q and %q = %v, want %v", a, b, got, want)
		}
		if want[0] != want[1] {
			differ++
		}
	}
	if differ < 20 {
		t.Errorf("autojunk made a difference in %d pairs only", differ)
	}
}

// observation draws what a household environment shows: a fixed frame around a list of things.
func observation(rng *rand.Rand) string {
	things := []string{
		"bed", "sofa", "desk", "drawer", "garbagecan", "lamp", "shelf", "safe", "armchair", "cabinet", "fridge",
		"sinkbasin",
	}
	var seen []string
	for range 6 + rng.IntN(12) {
		seen = append(seen, fmt.Sprintf("a %s %d", things[rng.IntN(len(things))], 1+rng.IntN(12)))
	}
	return "You are in the middle of a room. Looking quickly around you, you see " + strings.Join(seen, ", ") + "."
}

// exhaustive is the search for the first similar cluster without bounds or memory; it builds the
// index of a cluster's first member once, as the search proper does.
func exhaustive(texts []string, threshold float64, r RatcliffObershelp) (clusters []int, n int) {
	m := newMatcher(r)
	var first []*text
	for _, s := range texts {
		t := m.encode(s)
		k := slices.IndexFunc(first, func(f *text) bool { return m.ratio(t, f) >= threshold })
		if k < 0 {
			k, first = len(first), append(first, t)
		}
		clusters = append(clusters, k)
	}
	return clusters, len(first)
}

func bounded(texts []string, threshold float64, r RatcliffObershelp) (clusters []int) {
	find := Anchors{Similarity: threshold, RatcliffObershelp: r}.finder()
	for _, s := range texts {
		clusters = append(clusters, find(s))
	}
	return clusters
}

// corpus draws distinct observations, of which a share differ from an earlier one by an edit.
func corpus(rng *rand.Rand, n int, share float64) []string {
	known, out := map[string]bool{}, []string(nil)
	for len(out) < n {
		s := observation(rng)
		if len(out) > 0 && rng.Float64() < share {
			s = out[rng.IntN(len(out))]
			at := rng.IntN(len(s))
			s = s[:at] + string(rune('a'+rng.IntN(26))) + s[at+1:]
		}
		if !known[s] {
			known[s], out = true, append(out, s)
		}
	}
	return out
}

func TestBoundsChangeNoCluster(t *testing.T) {
	rng := rand.New(rand.NewPCG(55, 56))
	for _, off := range []bool{false, true} {
		r := RatcliffObershelp{NoAutojunk: off}
		for _, threshold := range []float64{0.3, 0.8, 0.95} {
			texts := corpus(rng, 80, 0.4)
			for range 30 { // again, and some odd ones
				texts = append(texts, texts[rng.IntN(len(texts))], first(randomPair(rng)))
			}
			want, n := exhaustive(texts, threshold, r)
			if got := bounded(texts, threshold, r); !slices.Equal(got, want) {
				t.Errorf("autojunk off %v, threshold %v: %v, want %v of %d clusters", off, threshold, got, want, n)
			}
		}
	}
}
