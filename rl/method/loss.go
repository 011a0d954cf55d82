package method

// Loss chooses the policy loss and its terms. Beside its name stand the parameters of every loss;
// which of them a loss reads, and with which default, the slot table says.
type Loss struct {
	Name           string        `json:"name" required:"true" doc:"the policy loss"`
	ClipLow        float64       `json:"clip_low" default:"0.2" above:"0" max:"1" doc:"the importance ratio is clipped below 1 − clip_low"`
	ClipHigh       float64       `json:"clip_high" default:"0.2" above:"0" max:"100" doc:"the importance ratio is clipped above 1 + clip_high"`
	DualClip       float64       `json:"dual_clip" default:"0" min:"0" max:"1000" doc:"bound on the ratio for negative advantages, > 1; 0 = off"`
	TauPositive    float64       `json:"tau_positive" default:"1" above:"0" max:"1000" doc:"steepness of the soft gate where the advantage is positive"`
	TauNegative    float64       `json:"tau_negative" default:"1.05" above:"0" max:"1000" doc:"steepness of the soft gate elsewhere"`
	Beta1          float64       `json:"beta1" default:"0.5" min:"0" max:"1000" doc:"share of the gradient kept below the clip (negative advantages)"`
	Beta2          float64       `json:"beta2" default:"1" min:"0" max:"1000" doc:"share of the gradient kept above the clip (positive advantages)"`
	Mask           bool          `json:"mask" default:"false" doc:"also drop the tokens that PPO's clip would drop"`
	CovLow         float64       `json:"cov_low" default:"1" min:"-1000000" max:"1000000" doc:"tokens with more covariance than this …"`
	CovHigh        float64       `json:"cov_high" default:"5" min:"-1000000" max:"1000000" doc:"… and less than this may be drawn"`
	CovRatio       float64       `json:"cov_ratio" above:"0" max:"1" doc:"share of the tokens that are drawn (clip_cov), or that are penalised, the most covariant first (kl_cov)"`
	CovCoefficient float64       `json:"cov_coefficient" default:"1" min:"0" max:"1000000" doc:"weight of |log-ratio| on the penalised tokens"`
	CovScope       string        `json:"cov_scope" default:"minibatch" enum:"minibatch|microbatch|group" doc:"the tokens that covariances are centred over and drawn from: of the mini-batch, of the micro-batch (as released), or of the same position in a group (SPEAR eq 16)"`
	Aggregation    string        `json:"aggregation" default:"token-mean" doc:"how per-token losses become one number"`
	OldLogProbs    string        `json:"old_log_probs" default:"rollout" quiet:"true" doc:"where the ratio's denominator comes from"`
	Entropy        float64       `json:"entropy" default:"0" min:"-1000" max:"1000" quiet:"true" doc:"coefficient c of − c·agg(H) in the loss; 0 = off"`
	SequenceMask   *SequenceMask `json:"sequence_mask" doc:"leave out rows with a negative advantage that the policy has moved away from; null or absent = off"`
	TIS            *TIS          `json:"tis" doc:"truncated importance sampling between the engine that sampled and the one that trains; null or absent = off"`
	KL             *KL           `json:"kl" doc:"a penalty on the distance from the reference policy; null or absent = off"`
	Reference      *Reference    `json:"reference" doc:"the reference policy where it is not the one that training started from; null or absent = that one"`
	Value          *Value        `json:"value" doc:"the critic; null or absent = none"`
}

// SequenceMask keeps row i iff A_i ≥ 0 or (1/T_i) Σ m(old − logp) ≤ Delta (ARLArena's *_SM).
type SequenceMask struct {
	Delta       float64 `json:"delta" default:"0.003" min:"0" max:"1000" doc:"greatest mean fall of the log-probabilities that a row with a negative advantage may show"`
	Denominator string  `json:"denominator" default:"fixed" enum:"fixed|shrink" doc:"aggregation counts the rows left out (fixed), or not (shrink)"`
}

// TIS weighs each token's loss with min(exp(old − rollout), Cap).
type TIS struct {
	Cap float64 `json:"cap" default:"2" above:"0" max:"1000" doc:"greatest weight of a token"`
}

// KL is the penalty on the distance from the reference policy.
type KL struct {
	Coefficient float64 `json:"coefficient" required:"true" above:"0" max:"1000" doc:"weight of the penalty; where it adapts, its first value"`
	In          string  `json:"in" default:"loss" doc:"where the penalty enters"`
	Estimator   string  `json:"estimator" enum:"k1|abs|k2|k3|k3+" doc:"estimate of a token's divergence; k3+ has the value of k3 and the gradient of k2"`
	Controller  string  `json:"controller" default:"fixed" quiet:"true" doc:"how the coefficient moves"`
	Target      float64 `json:"target" above:"0" max:"1000" doc:"divergence that the coefficient steers to"`
	Horizon     int     `json:"horizon" default:"10000" min:"1" max:"1000000000" doc:"trajectories in which an error of one is made up for"`
}

// Reference says which policy the penalty is against.
type Reference struct {
	RefreshEvery int `json:"refresh_every" required:"true" min:"1" max:"1000000" doc:"after each so many steps the policy of then becomes the reference"`
}

// Value is the critic: its loss is Coefficient·½·agg(max((V−R)², (clip(V, V_old ± Clip) − R)²)).
type Value struct {
	Coefficient float64 `json:"coefficient" default:"1" above:"0" max:"1000" doc:"weight of the value loss"`
	Clip        float64 `json:"clip" default:"0.5" above:"0" max:"1000" doc:"how far a value moves from its old one before its loss stops falling"`
	LR          float64 `json:"lr" default:"0.00001" above:"0" max:"10" doc:"learning rate of the critic; everything else is the policy's optimizer"`
}
