package method

// Reward chooses what a trajectory is worth.
type Reward struct {
	Name string `json:"name" required:"true" doc:"the reward"`
	// Fallback grades the whole text when there is no <answer> (as rStar2's released code does).
	Fallback bool `json:"fallback" default:"false" only:"trained" quiet:"true" doc:"grade the last box of the whole text when there is no <answer>"`
	// Symbolic asks the sandbox's sympy, as a stage of its own, about answers that strings and values leave open.
	Symbolic     bool      `json:"symbolic" default:"false" quiet:"true" doc:"have sympy in the sandbox compare answers that strings, values and lists find different; the verdicts are committed before scoring (stage grade)"`
	ToolStep     float64   `json:"tool_step" default:"0.1" min:"0" max:"1000" doc:"the tool term is min(1, tool_step × calls), times μ of the schedule"`
	FormatBonus  float64   `json:"format_bonus" default:"0.1" min:"0" max:"1000" doc:"added where every turn is well wrapped"`
	ProcessGate  float64   `json:"process_gate" default:"1" min:"-1000" max:"1000" doc:"least process reward that opens the judge's stage"`
	JudgeGate    float64   `json:"judge_gate" default:"1" min:"-1000" max:"1000" doc:"least judge's verdict that opens the stage of the answer's score"`
	Judge        string    `json:"judge" default:"exact" doc:"who compares a long answer with the reference"`
	SmoothedBLEU bool      `json:"smoothed_bleu" default:"false" doc:"an n-gram order without a match counts as 0.1 matches instead of giving 0"`
	Overlong     *Overlong `json:"overlong" doc:"DAPO's soft penalty on length; null or absent = off"`
}

// Overlong takes (length − (limit − Buffer))/Buffer·Factor from a response longer than limit − Buffer.
type Overlong struct {
	Buffer int     `json:"buffer" required:"true" min:"1" max:"1048576" doc:"tokens before the limit over which the penalty grows"`
	Factor float64 `json:"factor" default:"1" above:"0" max:"1000" doc:"penalty at the limit"`
}
