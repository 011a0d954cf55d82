package reward

import "testing"

func TestArenaOutcomes(t *testing.T) {
	for name, pair := range map[string][2]float64{
		"maths, right":        {GradeLastBox(`\boxed{1} so \boxed{0.5}`, "1/2", Options{}).Reward, 1},
		"maths, wrong":        {GradeLastBox(`\boxed{0.5} so \boxed{1}`, "1/2", Options{}).Reward, 0},
		"maths, no box":       {GradeLastBox(`<answer>1/2</answer>`, "1/2", Options{}).Reward, 0},
		"rStar2, box outside": {Grade(`<answer>\boxed{1}</answer>\boxed{2}`, "2", Options{}).Reward, 0},
		"rStar2, the whole text": {
			GradeLastBox(`<answer>\boxed{1}</answer>\boxed{2}`, "2", Options{}).Reward, 1,
		},
		"rStar2, fallback":         {Grade(`\boxed{2}`, "2", Options{Fallback: true}).Reward, 1},
		"rStar2, without fallback": {Grade(`\boxed{2}`, "2", Options{}).Reward, 0},
	} {
		if !near(pair[0], pair[1]) {
			t.Errorf("%s: %g, want %g", name, pair[0], pair[1])
		}
	}
}
