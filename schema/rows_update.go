package schema

// The sources of the rows that an optimiser step learns from.
const (
	SourcePolicy = "policy" // the step's batch
	SourceReplay = "replay" // the step's replay batch
)

// UpdateRow is one optimiser step (table updates). An optimiser step on both sources (replay.order joint) has a row for
// each, and both rows have the gradient norm of the sum.
type UpdateRow struct {
	OptimizerStep int64    `parquet:"optimizer_step" doc:"number of the optimiser step since the policy's training began"`
	Minibatch     int32    `parquet:"minibatch" doc:"number of the mini-batch in the update, from 0"`
	Rows          int32    `parquet:"rows" doc:"rows of the mini-batch"`
	Tokens        int64    `parquet:"tokens" unit:"tokens" doc:"loss tokens of the mini-batch"`
	Loss          float64  `parquet:"loss,split" doc:"value of the objective that was minimised"`
	KL            float64  `parquet:"kl,split" unit:"nats" doc:"mean of old − new log-probability over the loss tokens"`
	ClipFraction  float64  `parquet:"clip_fraction,split" doc:"share of loss tokens whose ratio was clipped"`
	Entropy       *float64 `parquet:"entropy,optional,split" changed:"8" unit:"nats" doc:"mean entropy over the loss tokens; null if the trainer computes none"`
	RatioMax      float64  `parquet:"ratio_max,split" doc:"greatest ratio of new to old probability"`
	GradNorm      *float64 `parquet:"grad_norm,optional,split" doc:"norm of the gradient before it was clipped; null if the trainer does not tell"`
	LR            float64  `parquet:"lr,split" doc:"learning rate"`
	PolicyBefore  string   `parquet:"policy_before,dict" doc:"checkpoint digest of the policy before the update"`
	PolicyAfter   string   `parquet:"policy_after,dict" doc:"checkpoint digest after the update, in its last row; else empty"`

	ClipFractionPositive *float64 `parquet:"clip_fraction_positive,optional,split" since:"2" doc:"the part of clip_fraction whose advantage is > 0"`
	ClipFractionNegative *float64 `parquet:"clip_fraction_negative,optional,split" since:"2" doc:"the part of clip_fraction whose advantage is < 0"`
	ReferenceKL          *float64 `parquet:"reference_kl,optional,split" since:"3" unit:"nats" doc:"mean over the loss tokens of the estimate of the divergence from the reference that the loss uses; null if it uses none"`
	Source               *string  `parquet:"source,optional,dict" since:"3" doc:"policy (rows of batch) or replay (rows of replay_batch); null if the recipe has no replay"`

	ValueLoss         *float64 `parquet:"value_loss,optional,split" since:"3" doc:"loss of the critic's optimiser step on the same rows; null if there is no critic, like the other columns of the critic"`
	ValueGradNorm     *float64 `parquet:"value_grad_norm,optional,split" since:"3" doc:"norm of the critic's gradient"`
	ExplainedVariance *float64 `parquet:"explained_variance,optional,split" since:"3" doc:"1 − Var(return − value) / Var(return) over the loss tokens before the step; null also if the returns do not vary"`
	ValueClipFraction *float64 `parquet:"value_clip_fraction,optional,split" since:"3" doc:"share of loss tokens whose clipped loss is the greater one, so that they have no gradient; 0 if the recipe does not clip"`
	ValueMean         *float64 `parquet:"value_mean,optional,split" since:"3" doc:"mean of the critic's values over the loss tokens, before the step"`
	ReturnMean        *float64 `parquet:"return_mean,optional,split" since:"3" doc:"mean of the critic's targets over the loss tokens"`

	AdvantageMean     *float64 `parquet:"advantage_mean,optional,split" since:"3" doc:"mean of the advantages by which the step multiplied its ratios, with weights, over the loss tokens, each token once (for the replay batch before the weight of the imitation); null if not recorded, like the next five"`
	AdvantageStd      *float64 `parquet:"advantage_std,optional,split" since:"3" doc:"their population standard deviation"`
	AdvantageMin      *float64 `parquet:"advantage_min,optional,split" since:"3" doc:"the least of them"`
	AdvantageMax      *float64 `parquet:"advantage_max,optional,split" since:"3" doc:"the greatest of them"`
	AdvantageZero     *float64 `parquet:"advantage_zero,optional,split" since:"3" doc:"share of loss tokens whose advantage is 0"`
	AdvantagePositive *float64 `parquet:"advantage_positive,optional,split" since:"3" doc:"share of loss tokens whose advantage is > 0"`

	BelowPositive    *float64 `parquet:"below_positive,optional,split" since:"3" doc:"share of loss tokens with an advantage > 0 whose ratio was below the lower bound, where no clip acts; null if not recorded"`
	AboveNegative    *float64 `parquet:"above_negative,optional,split" since:"3" doc:"share of loss tokens with an advantage < 0 whose ratio was above the upper bound, where no clip acts; null if not recorded"`
	DualClipFraction *float64 `parquet:"dual_clip_fraction,optional,split" since:"3" doc:"share of loss tokens on which the dual clip acted; null if not recorded"`

	Epoch     *int32  `parquet:"epoch,optional" since:"5" doc:"number of the pass over the rows, from 0; null if not recorded"`
	BatchRows []int32 `parquet:"batch_rows,list,optional" since:"5" doc:"the rows of the mini-batch: their numbers, from 0, in the step's batch (in its replay_batch if source is replay), in the order in which they were taken; null if not recorded"`

	RatioMin *float64 `parquet:"ratio_min,optional,split" since:"9" doc:"least ratio of new to old probability; null if not recorded"`
}

// AddShare adds an nth of a column's value to a mean; a mean without values is nil.
func AddShare(mean, value *float64, n float64) *float64 {
	if value == nil {
		return mean
	}
	share := *value / n
	if mean != nil {
		share += *mean
	}
	return &share
}

// OrZero returns a value, or 0 if there is none.
func OrZero(value *float64) float64 {
	if value == nil {
		return 0
	}
	return *value
}
