package protocol

import "testing"

func TestWrapped(t *testing.T) {
	for response, want := range map[string]bool{
		AnswerResponse("7"): true,
		"so</reason>" + Call("print(1)", "") + EndOfTurn:                   true,
		"so</reason>\n" + Call("1", "") + "\n" + Call("2", "") + EndOfTurn: true,
		"so</reason>" + BrokenCall("print(") + EndOfTurn:                   true, // a whole block, with any content
		"so</reason>" + EndOfTurn:                                          true,
		"so" + EndOfTurn:                                                   false, // the reason never ends
		"so</reason>7" + EndOfTurn:                                         false,
		"so</reason>" + Call("1", ""):                                      false, // cut off at the token limit
		"so</reason><answer>7" + EndOfTurn:                                 false,
		"so</reason><answer>7</answer> indeed" + EndOfTurn:                 false,
		"so</reason><reason>again</reason><answer>7</answer>" + EndOfTurn:  true,
		"so <answer>7</answer></reason><answer>7</answer>" + EndOfTurn:     false, // an answer inside the reason
		EndOfTurn: false,
		"":        false,
	} {
		if got := (RStar2{}).Parse(response, nil).WellFormed; got != want {
			t.Errorf("%q: %v", response, got)
		}
	}
}
