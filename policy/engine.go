package policy

// Engine samples and trains with the same models: Generate under a role uses the weights that Load, Step and the
// critic's head have left under that role. Its calls take turns, whichever half they belong to.
type Engine interface {
	Sampler
	Trainer
}

// Usage says what an engine has used of its devices since it was opened. Fields never decrease, except where noted.
type Usage struct {
	Trained      int64   // tokens that went forward and backward
	TrainSeconds float64 // seconds of kept forward passes, backward passes and steps
	// Flops counts the floating-point operations of the models' own matrix products in training. PeakFlops is the
	// devices' greatest rate per second in the models' number type, 0 if unknown; it does not accumulate.
	Flops, PeakFlops float64
	// PeakBytes is the most memory that one device has held; 0 if the device has no memory of its own.
	PeakBytes int64
	// Busy is the share of the time since the last call of Usage in which the devices worked; nil if it is not
	// measured. It does not accumulate.
	Busy *float64
}

// Meter is an engine that measures what it uses.
type Meter interface {
	// Usage returns what has been used up to now. It may be called while another call runs.
	Usage() Usage
}
