package reward

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedFile finds a file of the shared data, or skips the test.
func sharedFile(t *testing.T, name string) *os.File {
	t.Helper()
	dir := os.Getenv("ROPEWALK_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared") // next to the repository
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Skipf("shared data is absent (set ROPEWALK_SHARED): %v", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// finalAnswer is what follows the last "A:" of a solution.
func finalAnswer(solution string) string {
	at := strings.LastIndex(solution, "A:")
	if at < 0 {
		return ""
	}
	return strings.TrimSpace(solution[at+len("A:"):])
}

// The graders of four systems' solutions, 2,640 verdicts by others, agree with ours.
func TestAgreesWithRecordedVerdicts(t *testing.T) {
	type solved struct {
		Correct  bool `json:"is_correct"`
		Solution string
	}
	lines := bufio.NewScanner(sharedFile(t, "data/gsm8k/example_model_solutions_first_half.jsonl"))
	lines.Buffer(nil, 1<<22)
	verdicts, agreed := 0, 0
	for lines.Scan() {
		var line map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		var truth string
		if err := json.Unmarshal(line["ground_truth"], &truth); err != nil {
			t.Fatal(err)
		}
		for _, system := range []string{"6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"} {
			var s solved
			if err := json.Unmarshal(line[system], &s); err != nil {
				t.Fatal(err)
			}
			answer, gold := finalAnswer(s.Solution), finalAnswer(truth)
			verdicts++
			if got := Compare(answer, gold, Options{}); got.Correct() == s.Correct {
				agreed++
			} else {
				t.Logf("%s: %q against %q is %s here, recorded as %v", system, answer, gold, got, s.Correct)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if share := float64(agreed) / float64(verdicts); verdicts < 2640 || share < 0.995 {
		t.Errorf("%d of %d verdicts agree (%.4f), want ≥ 0.995", agreed, verdicts, share)
	} else {
		t.Logf("%d of %d verdicts agree (%.4f)", agreed, verdicts, share)
	}
}
