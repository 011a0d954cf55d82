// Package gsm8k reads released solutions of GSM8K questions as trajectories.
//
// Glossary. An *item* is one question with its reference solution (the ground truth) and the solutions of four systems,
// each with the source's own verdict is_correct. It becomes one group of four trajectories. A calculator *annotation*
// is <<expression=value>> inside a solution: the system wrote <<expression= and a calculator, or the system itself,
// wrote value>>. So an annotation is a tool *call* that ends a turn, and its value is the *observation* that begins the
// next turn. The concatenated turns are the solution, byte by byte. An annotation that is never closed makes no call
// and remains text. The *final answer* is the text after "A:" on a line (or after "####", as in the questions' own
// files).
//
// Expressions use everyday notation, not Python's: 5% is five per cent, 20,000 is one number, 2(3) is a product. An
// expression that does not parse goes to Python unchanged and fails there, as a failed tool call.
package gsm8k
