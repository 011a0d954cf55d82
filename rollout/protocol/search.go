package protocol

// Search is Search-R1's protocol of a search engine: <think>, <search> or <answer>, and results in <information>. The
// answer is the text of its tags.
//
// Source: Search-R1 (Jin et al. 2025), which ARLArena uses too. Departures: the instruction has its own words, with a
// line that describes the tool; after a call that is not closed, Search-R1 writes a sentence in the policy's name, and
// here the user's turn says what is wrong.
var Search = tagged{
	spec: Spec{
		Name: "search", Doc: "thoughts, queries of one tool and a plain answer in tags", Source: "Search-R1; ARLArena",
		Answer: AnswerInTags,
	},
	instruction: "Answer the given question. Reason inside <think> and </think> first, each time you get new " +
		"information. If you lack some knowledge, write a query inside <search> and </search>; the result comes " +
		"back between <information> and </information>. You may do so as often as you want. If you need nothing " +
		"more, write the answer inside <answer> and </answer>, without further explanation.",
	think: "think", calls: []string{"search"}, result: "information",
}
