package protocol

// AEPO is the protocol of AEPO and ARPO with two tools: <think>, <search> or <python>, results in <result>, and an
// <answer> with a box.
//
// Source: AEPO's release (003). Departures: the instruction has its own words and describes the episode's tools. The
// release limits calls and retries of a trajectory by counting; here rollout.max_turns does.
var AEPO = tagged{
	spec: Spec{
		Name: "aepo", Doc: "thoughts, searches, programs and a boxed answer in tags",
		Source: "AEPO's released code; ARPO", Answer: AnswerBoxInTags,
	},
	instruction: "Solve the given question step by step. Reason inside <think> and </think>. You may search " +
		"by writing a query inside <search> and </search>, and compute by writing a program inside <python> and " +
		"</python>; the result comes back between <result> and </result>. At the end write the answer inside " +
		"<answer> and </answer>, with the exact answer in \\boxed{}.",
	think: "think", calls: []string{"search", "python"}, result: "result", before: "\n", after: "\n",
}
