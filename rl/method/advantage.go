package method

// Advantage chooses the estimator. Beside its name stand the parameters of every estimator; which
// of them an estimator reads, and with which default, the slot table says.
type Advantage struct {
	Name           string        `json:"name" required:"true" doc:"the advantage estimator"`
	Std            bool          `json:"std" default:"true" doc:"divide by the group's sample standard deviation; false is Dr.GRPO's form (for gigpo: mean_norm)"`
	SingleGroup    string        `json:"single_group" default:"raw" enum:"raw|zero" doc:"advantage in a group of one: its reward (raw) or 0 (zero)"`
	Stats          string        `json:"stats" default:"turn_rows" enum:"turn_rows|per_trajectory" quiet:"true" doc:"what a group's mean and deviation run over, in layout turns: every turn's row, or the first row of each trajectory"`
	InvalidPenalty float64       `json:"invalid_penalty" default:"0" min:"0" max:"1000" quiet:"true" doc:"taken from the score of a turn's row whose action is invalid, and from its step return"`
	Gamma          float64       `json:"gamma" min:"0" max:"1" doc:"discount: of one token (reinforce_pp, gae), of one turn (gigpo)"`
	Idle           string        `json:"idle" default:"equal" enum:"equal|zero" doc:"rows that the others are scaled up for: those in groups of equal scores (the paper), or those of score 0 (verl)"`
	Lambda         float64       `json:"lambda" default:"0.95" min:"0" max:"1" doc:"decay of the temporal-difference errors"`
	Returns        string        `json:"returns" default:"carry" enum:"carry|reset" doc:"at observation tokens the return passes unchanged (carry), or starts again as older releases have it (reset; for gae: they count as the policy's)"`
	Omega          float64       `json:"omega" default:"1" min:"0" max:"1000" doc:"weight of the step advantage beside the episode's"`
	Anchors        string        `json:"anchors" default:"exact" doc:"which turns of a group share an anchor state"`
	Similarity     float64       `json:"similarity" default:"0.95" above:"0" max:"1" doc:"least Ratcliff–Obershelp ratio to an anchor's first observation"`
	Autojunk       bool          `json:"autojunk" default:"true" doc:"frequent characters of long observations seed no match, as in Python's difflib"`
	K              float64       `json:"k" default:"1" min:"0" max:"1000" doc:"how strongly a turn's entropy lowers the weight of its own advantage"`
	KPrime         float64       `json:"k_prime" default:"1" min:"0" max:"1000" doc:"how strongly the next turn's entropy lowers the bonus for future clarity"`
	Zeta           float64       `json:"zeta" default:"0.05" min:"0" max:"1000" doc:"weight of the bonus for future clarity"`
	EntropyAware   *EntropyAware `json:"entropy_aware" doc:"AEPO's factor 1 + weight·z of each token's standardised entropy; null or absent = off"`
}

// EntropyAware scales each token's advantage by its standardised entropy (AEPO eq 11).
type EntropyAware struct {
	Weight float64 `json:"weight" default:"0.2" above:"0" max:"100" doc:"a of 1 + a·z"`
	Scope  string  `json:"scope" default:"group" enum:"group|trajectory|batch" doc:"the tokens whose mean and deviation standardise an entropy"`
	Form   string  `json:"form" default:"linear" enum:"linear|power" doc:"1 + a·z, or max(1 + z, 0)^a as AEPO's Algorithm 2 writes"`
}
