// Package planning plans a run before it starts, from its recipe, the sizes of its model and an inventory of devices:
// which processes run where and listen on which ports, what each device must hold, how long a step takes, and what is
// written.
//
// Glossary. A *consumer* is what takes whole devices: the ranks of the PyTorch engine, and each inference server. Its
// *need* is the memory that each of its devices must have free. A *refusal* says what does not fit, with the numbers,
// and which changes of the recipe would fit. *Assumptions* are shares of what data sheets promise (plan.Assumed).
//
//	recipe + model + inventory → Make → Plan → WriteText, JSON
//	           Update, engineMemory, Servers: memory      Placement, Refused
//	           Rollouts, Training: tokens, flops    Step
//	           Rows, Checkpoint: bytes              Writes
//
// Formulas of one model on one device are those of package gpu/plan.
package planning
