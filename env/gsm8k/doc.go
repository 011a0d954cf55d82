// Package gsm8k reads released solutions of GSM8K questions as trajectories.
//
// Glossary. An *item* is one question with its reference solution (the ground truth) and the
// solutions of four systems, each with the source's own verdict is_correct; it becomes one group
// of four trajectories. A calculator *annotation* is <<expression=value>> inside a solution: the
// system wrote <<expression= and a calculator, or the system itself, wrote value>>. So an
// annotation is a tool *call* that ends a turn, and its value is the *observation* that the next
// turn begins with; the concatenated turns are the solution, byte by byte. An annotation that is
// never closed called nothing and stays text. The *final answer* is what follows "A:" on a line
// (or "####", as in the questions' own files).
//
// An expression is in the notation of people, not of Python: 5% is five per cent, 20,000 is one
// number, 2(3) is a product. What cannot be read so is handed to Python as it stands, and fails
// there as the tool call it was.
package gsm8k
