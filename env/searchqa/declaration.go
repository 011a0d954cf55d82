package searchqa

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// rewards can score the trajectories of both environments.
var rewards = []string{"prs_short", "prs_long", "prs_general", "exact_match", "f1", "deep_research"}

// Declarations declare the two environments: search_qa and deep_research.
var (
	SearchQA = env.Declaration{
		Name: "search_qa", Doc: "questions answered by searching a library of generated documents",
		Source:       "HotpotQA (Yang et al. 2018); 2WikiMultiHopQA (Ho et al. 2020); PRS + VSPO",
		Demonstrated: true, Golds: true, Protocol: "prs", Rewards: rewards,
		Tools: []string{searchTool}, MoreTools: []string{browseTool},
		Strings: fixed, Lay: lay, Settings: env.SettingsOf[fields](), Summary: summary, Open: opener("search_qa"),
	}
	DeepResearch = env.Declaration{
		Name: "deep_research", Doc: "the same questions, answered by searching and by running Python",
		Source:    "AEPO §4.4",
		Sandboxed: true, Demonstrated: true, Golds: true, Protocol: "aepo", Rewards: rewards,
		Tools: []string{searchTool, "python"}, MoreTools: []string{browseTool},
		Strings: fixed, Lay: lay, Settings: env.SettingsOf[fields](), Summary: summary, Open: opener("deep_research"),
	}
)

// fields are the settings in a recipe. Their defaults are the full-size world.
type fields struct {
	Documents  int    `json:"documents" quiet:"true" doc:"documents of the corpus, from 200; 0 = 6,000" default:"0" min:"0" max:"20000"`
	Brief      bool   `json:"brief" quiet:"true" doc:"documents state the facts alone, in few words" default:"false"`
	Train      string `json:"train" quiet:"true" doc:"families of training questions, separated by commas (env/searchqa/README.md lists them); empty = birth_river, author_birthplace" default:"\"\""`
	Evaluate   string `json:"evaluate" quiet:"true" doc:"families of held-out questions; empty = all with short answers" default:"\"\""`
	Results    int    `json:"results" quiet:"true" doc:"results of a search at most; 0 = 10" default:"0" min:"0" max:"10"`
	Snippet    int    `json:"snippet_bytes" quiet:"true" doc:"bytes of the text that a result shows at most, from 16; 0 = 160" default:"0" min:"0" max:"10000"`
	PageTokens int    `json:"page_tokens" quiet:"true" doc:"tokens of a document that browse shows before it cuts, from 16; 0 = 6,000" default:"0" min:"0" max:"6000"`
	Summary    int    `json:"summary_tokens" quiet:"true" doc:"tokens at most, from 8, of the summary that browse shows of a document: the run's first policy, which stays untrained, writes it for the question; 0 = the document itself, cut" default:"0" min:"0" max:"6000"`
}

// summary returns the setting summary_tokens.
func summary(s env.Settings) int {
	f, err := env.Read[fields](s)
	if err != nil {
		return 0 // Open reports it
	}
	return f.Summary
}

// opener returns what opens the environment with a name.
func opener(name string) func(env.Options) (env.Environment, error) {
	return func(o env.Options) (env.Environment, error) {
		f, err := env.Read[fields](o.Settings)
		if err != nil {
			return nil, err
		}
		return New(Settings{Name: name, Documents: f.Documents, Brief: f.Brief, Train: env.Names(f.Train),
			Evaluate: env.Names(f.Evaluate), Results: f.Results, Snippet: f.Snippet, Page: f.PageTokens,
			Summary: f.Summary})
	}
}

// fixed lists the strings that become one token each: the parts of names, and the words of questions and facts.
func fixed() []string {
	out := slices.Concat(firstNames, lastNames, cityStarts, cityEnds, riverStarts, riverEnds, countryStart, countryEnds,
		adjectives, nouns, companyEnds)
	for _, list := range [][]string{lastNames, nouns, companyEnds} {
		for _, part := range list {
			out = append(out, " "+part)
		}
	}
	for _, a := range adjectives {
		out = append(out, "The "+a)
	}
	for _, f := range families {
		for part := range strings.SplitSeq(f.text, "%s") {
			out = append(out, part)
		}
	}
	for _, r := range []relation{born, lies, within, capital, author, founder, seat, employs} {
		out = append(out, capitalised(string(r))+" ", ": "+capitalised(string(r))+" ", ". "+capitalised(string(r))+" ")
	}
	out = append(out, "River ", ". Dated ", " Prize", "Letters to ", " Fair", "Essay on ", " strike", ": Held in ",
		": Kept in ", ": Held near ", ": Printed in ", ": Ended in ", ".\n", " and ", ", ", ": ")
	out = slices.DeleteFunc(out, func(s string) bool { return len(s) < 2 })
	slices.Sort(out)
	return slices.Compact(out)
}
