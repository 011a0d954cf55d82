package protocol

// PRS is the protocol of progressive reward shaping: <reasoning>, <wiki_search> or <answer>. The answer is the text of
// its tags.
//
// Source: PRS + VSPO App. A (004), whose instruction is used word for word. Departures: the appendix does not say how a
// call and its result are written; here they are in tags, as its reasoning and its answer are. A line that describes
// the tool follows the instruction.
var PRS = tagged{
	spec: Spec{
		Name: "prs", Doc: "reasoning, wiki searches and a plain answer in tags", Source: "PRS + VSPO App. A",
		Answer: AnswerInTags,
	},
	instruction: "Answer the given question. You must conduct reasoning inside <reasoning> and </reasoning> " +
		"first every time you get new information. After reasoning, if you find you lack some knowledge, you can " +
		"call wiki_search, and it will return the top searched results. You can search as many times as you " +
		"want. If you find no further external knowledge needed, you can directly provide the answer inside " +
		"<answer> and </answer> without detailed illustrations. For example, <answer> xxx </answer>.",
	think: "reasoning", calls: []string{"wiki_search"}, result: "result",
}
