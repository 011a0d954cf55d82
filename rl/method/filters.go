package method

// Filters take rows out of the loss. Their rewards stay in the statistics of their groups.
type Filters struct {
	Overlong   bool        `json:"overlong" default:"false" quiet:"true" doc:"mask a row whose response reaches its limit of tokens"`
	VoidTurns  bool        `json:"void_turns" default:"false" quiet:"true" doc:"mask a trajectory with a turn that has neither a parsable tool call nor a final answer"`
	Unreadable bool        `json:"unreadable" default:"false" quiet:"true" doc:"mask a row whose text holds bytes that are no characters"`
	Repetition *Repetition `json:"repetition" doc:"mask a row that repeats itself; null or absent = off"`
}

// Repetition finds a row in which some n-gram of tokens occurs Times times.
type Repetition struct {
	NGram int `json:"ngram" default:"20" min:"1" max:"1000" doc:"tokens of the n-gram"`
	Times int `json:"times" default:"10" min:"2" max:"100000" doc:"occurrences that mask the row"`
}
