package env

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// FormTeacher demonstrates the form of calls and answers and nothing about the tasks, as rStar2's non-reasoning cold
// start does (rStar2 §4.1): programs about random numbers, and the answer that the last of them printed. It reads
// neither a task's text nor its gold, so a policy that is cloned from it learns to call and to answer, and not to
// solve. Departure: the paper's demonstrations are public sets of function calls, instructions and chats.
type FormTeacher struct {
	Teacher // draws the tasks
}

// The random numbers of a program.
const (
	formLongest = 4 // most operands of an expression
	formDigits  = 3 // most digits of an operand
	formTwice   = 0.25
)

// Demonstrate makes one call or two, and answers what the last call showed. Where there is nothing to call, the answer
// is a random number. The calls depend on rng alone.
func (FormTeacher) Demonstrate(_ context.Context, rng *rand.Rand, _ Task, _ Lesson,
	act func(Move) (Shown, error)) error {
	answer := formNumber(rng)
	programs := []string{formProgram(rng)}
	if rng.Float64() < formTwice {
		programs = append(programs, formProgram(rng))
	}
	for _, code := range programs {
		shown, err := act(Move{Code: code})
		if err != nil {
			return fmt.Errorf("demonstrate the form of a call: %w", err)
		}
		if shown.OK && shown.Text != "" {
			answer = shown.Text
		}
	}
	_, err := act(Move{Answer: answer})
	return err
}

// Right reports whether an answer is right, by the environment's own comparison if it has one.
func (t FormTeacher) Right(task Task, answer string) bool {
	if m, ok := t.Teacher.(Marker); ok {
		return m.Right(task, answer)
	}
	return answer == task.Answer
}

// formProgram writes a program that prints the value of a random expression.
func formProgram(rng *rand.Rand) string {
	code := formNumber(rng)
	for range 1 + rng.IntN(formLongest-1) {
		code += string("+-*"[rng.IntN(3)]) + formNumber(rng)
	}
	return "print(" + code + ")"
}

// formNumber is a random number from 1 on, each number of digits equally often.
func formNumber(rng *rand.Rand) string {
	low := 1
	for range rng.IntN(formDigits) {
		low *= 10
	}
	return strconv.Itoa(low + rng.IntN(9*low))
}
