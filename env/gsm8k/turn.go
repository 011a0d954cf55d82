package gsm8k

import (
	"regexp"
	"strings"
)

// Turn is one response of a system with the observation before it.
type Turn struct {
	Observation string // the previous call's value and >>; "" at turn 0
	Response    string // ends with <<expression= if it calls the calculator
	Calls       []Call // one, or none in the last turn
}

// Split cuts a solution into turns after each annotation's equals sign. The concatenated observations and responses are
// the solution. There is one more turn than calls.
func Split(solution string) []Turn {
	var turns []Turn
	from, observation := 0, ""
	for _, m := range annotation.FindAllStringSubmatchIndex(solution, -1) {
		inside := solution[m[2]:m[3]]
		cut := m[3] // an annotation without a value is all call
		if at := strings.IndexByte(inside, '='); at >= 0 {
			cut = m[2] + at + 1
		}
		turns = append(turns, Turn{observation, solution[from:cut], []Call{newCall(inside)}})
		observation, from = solution[cut:m[1]], m[1]
	}
	return append(turns, Turn{Observation: observation, Response: solution[from:]})
}

// Join returns the solution that Split cut.
func Join(turns []Turn) string {
	var b strings.Builder
	for _, t := range turns {
		b.WriteString(t.Observation)
		b.WriteString(t.Response)
	}
	return b.String()
}

// ReadCalls reads the call of a turn from the response alone. calls is the number of calls in the turn's row. The
// result lacks the annotated value, because the next turn observes it.
func ReadCalls(response string, calls int) []Call {
	at := strings.LastIndex(response, "<<")
	if calls == 0 || at < 0 {
		return nil
	}
	return []Call{newCall(strings.TrimSuffix(response[at+2:], "="))}
}

// finalLine matches a final answer: "A: 18" in the released solutions, "#### 18" in the
// questions' own files.
var finalLine = regexp.MustCompile(`(?m)^[ \t]*(?:A:|####)[ \t]*(.*?)[ \t\r]*$`)

// FinalAnswer returns the text of the last final-answer line, or false if no line has any.
func FinalAnswer(solution string) (string, bool) {
	all := finalLine.FindAllStringSubmatch(solution, -1)
	if len(all) == 0 {
		return "", false
	}
	answer := all[len(all)-1][1]
	return answer, answer != ""
}

// AnswerLines counts the final-answer lines of a solution, as closed answer tags are counted in sampled trajectories.
func AnswerLines(solution string) int { return len(finalLine.FindAllString(solution, -1)) }
