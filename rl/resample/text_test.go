package resample

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// slowRepetitive counts every run by name.
func slowRepetitive(r Repetition, tokens []int32) bool {
	times := map[string]int{}
	for i := 0; i+r.Gram <= len(tokens); i++ {
		name := fmt.Sprint(tokens[i : i+r.Gram])
		if times[name]++; times[name] >= r.Times {
			return true
		}
	}
	return false
}

func TestRepetitionAgainstCounting(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	found := 0
	for range 2000 {
		r := Repetition{Gram: 1 + rng.IntN(4), Times: 2 + rng.IntN(4)}
		tokens := make([]int32, rng.IntN(40))
		for i := range tokens {
			tokens[i] = int32(rng.IntN(4)) - 1
		}
		want := slowRepetitive(r, tokens)
		if want {
			found++
		}
		if r.Match(tokens) != want {
			t.Fatalf("%+v of %v: %v", r, tokens, !want)
		}
	}
	if found < 100 || found > 1900 {
		t.Errorf("%d of 2000 repeat: the cases do not tell", found)
	}
}

func TestRepetitionAtItsLimits(t *testing.T) {
	same := make([]int32, 29) // 20 tokens fit 10 times into 29
	if !DefaultRepetition.Match(same) || DefaultRepetition.Match(same[:28]) || DefaultRepetition.Match(nil) {
		t.Error("20 equal tokens occur 10 times in 29")
	}
	period := slices.Repeat([]int32{1, 2, 3, 4, 5}, 13) // 65 tokens hold a run of period 5 ten times
	if !DefaultRepetition.Match(period) || DefaultRepetition.Match(period[:64]) {
		t.Error("a period of 5 repeats its run of 20 ten times in 65 tokens")
	}
}

// Runs whose hashes meet are told apart by their tokens.
func TestRepetitionWithMeetingHashes(t *testing.T) {
	r, seen := Repetition{Gram: 1, Times: 2}, map[uint64][]run{}
	if r.count(seen, 7, 0, []int32{1, 2}) != 1 || r.count(seen, 7, 1, []int32{1, 2}) != 1 ||
		r.count(seen, 7, 1, []int32{1, 1}) != 2 {
		t.Errorf("runs %v", seen)
	}
}

func TestUnreadable(t *testing.T) {
	for text, want := range map[string]bool{"": false, "héllo 你好": false, "a\uFFFDb": true, "a\xffb": true,
		"\xe4\xbd": true} {
		if (Unreadable{}).Match(text) != want {
			t.Errorf("%q: unreadable %v", text, !want)
		}
	}
}

func FuzzRepetition(f *testing.F) {
	f.Add([]byte("abcabcabc"), 3, 2)
	f.Fuzz(func(t *testing.T, text []byte, gram, times int) {
		r := Repetition{Gram: gram, Times: times}
		if r.Validate() != nil || len(text) > 200 {
			return
		}
		tokens := make([]int32, len(text))
		for i, b := range text {
			tokens[i] = int32(b)
		}
		if gram > len(text) || times > len(text) {
			if len(tokens) > 0 && r.Match(tokens) {
				t.Fatal("a run longer than the response")
			}
			return
		}
		if r.Match(tokens) != slowRepetitive(r, tokens) {
			t.Fatalf("%+v of %q", r, text)
		}
	})
}

func TestCloning(t *testing.T) {
	episodes := []Episode{
		{"b", "1", true, 0, []string{"go", "take"}},
		{"a", "4", true, 0, []string{"look"}},
		{"a", "1", true, 0, []string{"go", "take"}},
		{"a", "2", true, 0, []string{"go", "take"}},
		{"a", "0", false, 0, []string{"wait"}},
		{"a", "3", true, 1, []string{"open"}},
		{"a", "5", true, 0, []string{"got", "ake"}}, // the same letters, other actions
		{"a", "6", true, 0, []string{"wait"}},
	}
	want := []EpisodeVerdict{
		{"a", "0", false, NotSuccessful}, {"a", "1", true, ""}, {
			"a", "2", false, DuplicateAction,
		}, {"a", "3", false, InvalidTurn},
		{"a", "4", true, ""}, {"a", "5", true, ""}, {"a", "6", false, TaskFull}, {"b", "1", true, ""},
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		rng.Shuffle(len(episodes), func(i, j int) { episodes[i], episodes[j] = episodes[j], episodes[i] })
		got, err := Cloning{PerTask: 3}.Select(episodes)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("verdicts %v", got)
		}
	}
	if got, err := (Cloning{AllowLoose: true}).Select(episodes); err != nil || !got[3].Kept || !got[6].Kept {
		t.Errorf("without cap and form: %v, %v", got, err)
	}
	for name, bad := range map[string][]Episode{
		"twice": {{TaskID: "a"}, {TaskID: "a"}}, "loose": {{TaskID: "a", LooseTurns: -1}},
	} {
		if _, err := (Cloning{}).Select(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := (Cloning{PerTask: -1}).Select(nil); err == nil {
		t.Error("a negative cap is taken")
	}
	if got, err := (Cloning{}).Select(nil); err != nil || len(got) != 0 {
		t.Errorf("no episodes: %v, %v", got, err)
	}
}
