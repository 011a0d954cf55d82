package gsm8k

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// line is a complete item, written for these tests.
const line = `{"question": "Ann has 5 apples and eats 2. How many are left?", ` +
	`"ground_truth": "5-2=<<5-2=3>>3\nA: 3", ` +
	`"6b_finetuning": {"is_correct": true, "solution": "She has 5 - 2 = <<5-2=3>>3 left\nA: 3"}, ` +
	`"6b_verification": {"is_correct": false, "solution": "5 + 2 = <<5+2=7>>7 and <<X=1>>\nA: 7"}, ` +
	`"175b_finetuning": {"is_correct": false, "solution": "So <<5-"}, ` +
	`"175b_verification": {"is_correct": true, "solution": "A: 3"}}`

func TestRead(t *testing.T) {
	items, err := Read(strings.NewReader("\n" + line + "\n\n" + line))
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Equal(t, []int{2, 4}, []int{items[0].Line, items[1].Line})
	require.Equal(t, "3", items[0].Gold)
	want := []Trajectory{
		{System: "6b_finetuning", Text: "She has 5 - 2 = <<5-2=3>>3 left\nA: 3", FinalAnswer: "3", HasAnswer: true,
			Correct: true, Turns: []Turn{
				{Response: "She has 5 - 2 = <<5-2=",
					Calls: []Call{{Expression: "5-2", Value: "3", Code: "print(5-2)", Parsed: true}}},
				{Observation: "3>>", Response: "3 left\nA: 3"},
			}},
		{System: "6b_verification", Text: "5 + 2 = <<5+2=7>>7 and <<X=1>>\nA: 7", FinalAnswer: "7", HasAnswer: true,
			Turns: []Turn{
				{Response: "5 + 2 = <<5+2=",
					Calls: []Call{{Expression: "5+2", Value: "7", Code: "print(5+2)", Parsed: true}}},
				{Observation: "7>>", Response: "7 and <<X=",
					Calls: []Call{{Expression: "X", Value: "1", Code: "print(X)"}}},
				{Observation: "1>>", Response: "\nA: 7"},
			}},
		{System: "175b_finetuning", Text: "So <<5-", Turns: []Turn{{Response: "So <<5-"}}},
		{System: "175b_verification", Text: "A: 3", FinalAnswer: "3", HasAnswer: true, Correct: true,
			Turns: []Turn{{Response: "A: 3"}}},
	}
	require.Empty(t, cmp.Diff(want, items[0].Trajectories))
	require.Len(t, items[0].Trajectories[1].Calls(), 2)
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "read solutions: the file holds none"},
		{"\n \n", "read solutions: the file holds none"},
		{line + "\n{", "read solutions: line 2: unexpected EOF"},
		{line + "\n[]", "read solutions: line 2: must be an object, got a list"},
		{line + "{}", "read solutions: line 1: more than one value"},
		{"{}", "read solutions: line 1: question is missing"},
		{strings.Replace(line, `"question"`, `"query"`, 1), `read solutions: line 1: json: unknown field "query"`},
		{strings.Replace(line, `A: 3", "6b`, `So 3", "6b`, 1),
			`read solutions: line 1: ground_truth has no final answer ("A: …")`},
		{strings.Replace(line, `{"is_correct": true, "solution": "A: 3"}`, `null`, 1),
			"read solutions: line 1: 175b_verification is missing"},
		{strings.Replace(line, `"is_correct": false, `, ``, 1),
			"read solutions: line 1: 6b_verification.is_correct is missing"},
		{strings.Replace(line, `"is_correct": false`, `"is_correct": 0`, 1),
			"read solutions: line 1: 6b_verification.is_correct: must be true or false, got a number"},
		{strings.Replace(line, `, "solution": "So <<5-"`, ``, 1),
			"read solutions: line 1: 175b_finetuning.solution is missing"},
		{line + "\n" + strings.Repeat("x", maxLineBytes+1), "read solutions: line 2: bufio.Scanner: token too long"},
	} {
		items, err := Read(strings.NewReader(c.text))
		require.Nil(t, items)
		require.ErrorContains(t, err, c.want)
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		text  string
		calls int
	}{
		{"", 0},
		{"no calls", 0},
		{"<<1+1=2>>", 1},
		{"<<1+1=2>><<2+2=4>>", 2},
		{"a <<3>> b", 1},
		{"a <<=>> b", 1},
		{"<<2=1+1=2>>", 1},
		{"open <<3/440=0.0068", 0},
		{"open <<3\n=3>> closed", 0},
		{"<<1<<2=2>>", 1},
		{">> << <<5=5>> <<", 1},
	} {
		turns := Split(c.text)
		require.Equal(t, c.text, Join(turns))
		require.Len(t, turns, c.calls+1, c.text)
		for i, turn := range turns {
			want := 1
			if i == c.calls {
				want = 0
			}
			require.Len(t, turn.Calls, want)
			read := ReadCalls(turn.Response, want)
			for k := range read {
				read[k].Value = turn.Calls[k].Value // the next turn's observation
			}
			require.Empty(t, cmp.Diff(turn.Calls, read))
		}
	}
}

func TestFinalAnswer(t *testing.T) {
	for _, c := range []struct {
		text, want string
		ok         bool
		lines      int
	}{
		{"so 18\nA: 18", "18", true, 1},
		{"so 18\n#### 18\n", "18", true, 1},
		{"A:18 \r\n", "18", true, 1},
		{"A: 1\nA: 2", "2", true, 2},
		{"A: 1\nA:", "", false, 2},
		{"PA: 3", "", false, 0},
		{"B: 3 A: 4", "", false, 0},
		{"", "", false, 0},
	} {
		got, ok := FinalAnswer(c.text)
		require.Equal(t, c.want, got, c.text)
		require.Equal(t, c.ok, ok, c.text)
		require.Equal(t, c.lines, AnswerLines(c.text), c.text)
	}
}

// bytesOf encodes a text as its bytes.
func bytesOf(text string) []int32 {
	var ids []int32
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	return ids
}

func TestRows(t *testing.T) {
	items, err := Read(strings.NewReader(line + "\n" + line))
	require.NoError(t, err)
	tables, err := Rows(0, items, bytesOf)
	require.NoError(t, err)
	require.Len(t, tables.Prompts, 2)
	require.Len(t, tables.Trajectories, 8)
	require.Equal(t, []bool{true, false, false, true, true, false, false, true}, tables.Correct)
	require.Equal(t, tables.Prompts[0].ProblemID, tables.Prompts[1].ProblemID)
	require.Equal(t, int32(1), tables.Prompts[0].Level)

	got := tables.Trajectories[5]
	require.Equal(t, "00000/0001", got.GroupID)
	require.Equal(t, "00000/0001/001", got.TrajectoryID)
	require.Equal(t, "gsm8k-solutions/6b_verification", got.Source)
	require.Equal(t, []int32{3, 2, 1}, []int32{got.Turns, got.ToolCalls, got.AnswerTags})
	require.Equal(t, []string{"answered", "7", "3"}, []string{got.Finish, got.FinalAnswer, got.Gold})
	require.Equal(t, int32(len(items[1].Question)+len(got.Text)), got.Tokens)
	require.Equal(t, int32(len(got.Text)-len("7>>")-len("1>>")), got.ResponseTokens)
	require.Equal(t, "no_action", tables.Trajectories[2].Finish)

	call := tables.ToolCalls[2]
	require.Empty(t, cmp.Diff(schema.ToolCallRow{
		GroupID: "00000/0000", TrajectoryID: "00000/0000/001", Turn: 1, Name: "calculator",
		Arguments: `{"expression":"X"}`, Code: "print(X)",
	}, call))
	checkTurns(t, tables)
}

// checkTurns checks the conditions that hold for every turn row of an import.
func checkTurns(t *testing.T, tables Tables) {
	t.Helper()
	text := map[string]string{}
	for _, r := range tables.Turns {
		require.Len(t, r.LossMask, len(r.TokenIDs))
		require.Nil(t, r.LogProbs)
		require.Nil(t, r.Entropies)
		for i, m := range r.LossMask {
			require.Equal(t, i >= int(r.ContextTokens), m == 1)
		}
		require.Len(t, r.AnchorHash, 64)
		text[r.TrajectoryID] += r.Observation + r.Response
	}
	for _, r := range tables.Trajectories {
		require.Equal(t, r.Text, text[r.TrajectoryID])
	}
}

func TestRowsRefusesTooManyGroups(t *testing.T) {
	_, err := Rows(0, make([]Item, schema.MaxGroups+1), bytesOf)
	require.ErrorContains(t, err, "at most 10000 groups")
}

func TestReadRefusesTooManyQuestions(t *testing.T) {
	_, err := Read(strings.NewReader(strings.Repeat(line+"\n", schema.MaxGroups+1)))
	require.EqualError(t, err,
		"read solutions: the file holds 10001 questions; at most 10000 are imported at once: split it")
}
