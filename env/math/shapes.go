package math

import "github.com/ropewalk/ropewalk/internal/dataset"

// byLevel reads levels such as 3 and Level 3; a level without a number counts as none.
const byLevel = "level | number"

// oneGold are the shapes of public sets whose questions have one right answer.
var oneGold = []dataset.Shape{
	{Name: "verl, DAPO-Math-17k", Needs: []string{"prompt | user", "reward_model.ground_truth"},
		Columns: map[string]string{text: "prompt | user", answer: "reward_model.ground_truth"},
		Note:    "system messages are not read. DAPO-Math-17k repeats its questions: set duplicates: first"},
	{Name: "MATH-500, AIME, HMMT (MathArena)", Needs: []string{"problem", answer},
		Columns: map[string]string{text: "problem", level: byLevel}},
	{Name: "OpenMathReasoning", Needs: []string{"problem", "expected_answer"},
		Columns: map[string]string{text: "problem", answer: "expected_answer"},
		Note:    "a problem has several solutions: set duplicates: first"},
	{Name: "MATH", Needs: []string{"problem", "solution | boxed"},
		Columns: map[string]string{text: "problem", answer: "solution | boxed", level: byLevel}},
	{Name: "messages", Needs: []string{"messages | user", "messages | assistant"},
		Columns: map[string]string{text: "messages | user", answer: "messages | assistant"},
		Note:    "the last question of a conversation; what was said before is not read"},
	{Name: "ShareGPT", Needs: []string{"conversations | user", "conversations | assistant"},
		Columns: map[string]string{text: "conversations | user", answer: "conversations | assistant"},
		Note:    "as messages"},
	{Name: "TRL's prompt and completion", Needs: []string{"prompt", "completion"},
		Columns: map[string]string{text: "prompt", answer: "completion"}},
	{Name: "HotpotQA", Needs: []string{text, answer, "supporting_facts"}, Columns: map[string]string{level: byLevel},
		Note: "the question alone, without its documents"},
	{Name: "GSM8K", Needs: []string{text, answer}, Note: "also every file with these columns"},
}

// manyGolds are the shapes whose questions may have several.
var manyGolds = []dataset.Shape{
	{Name: "Search-R1", Needs: []string{text, "golden_answers"}, Columns: map[string]string{answer: "golden_answers"}},
	{Name: "Search-R1 in verl's form", Needs: []string{"prompt | user", "reward_model.ground_truth.target"},
		Columns: map[string]string{text: "prompt | user", answer: "reward_model.ground_truth.target"}},
	{Name: "TriviaQA", Needs: []string{text, "answer.aliases.0"}, Columns: map[string]string{answer: "answer.aliases"}},
	{Name: "NQ", Needs: []string{text, "answer.0"}},
}

// Shapes are the shapes that environments recognise. Those that are not here recognise the shapes of math.
var Shapes = map[string][]dataset.Shape{"math": oneGold, qa: withGolds.format.Shapes, calling: bringing}
