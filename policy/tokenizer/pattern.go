package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// The patterns by which published vocabularies split a text into words. Go's regexp has no look-ahead, so each pattern
// is a function; a pattern that is not listed is refused.
const (
	gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llamaHead   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	llamaTail   = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// Llama 3 takes up to three digits at once, Qwen one.
	llama3Pattern = llamaHead + `\p{N}{1,3}` + llamaTail
	qwenPattern   = llamaHead + `\p{N}` + llamaTail
)

// patterns are the functions of the patterns: each returns the length of a text's first word.
var patterns = map[string]func(text string) int{
	gpt2Pattern:   wordLength,
	llama3Pattern: func(text string) int { return lineWord(text, 3) },
	qwenPattern:   func(text string) int { return lineWord(text, 1) },
}

// untilDigit is the length of the text before the next digit, or of the digit that the text begins with.
func untilDigit(text string) int {
	for at := 0; at < len(text); {
		c, n := classOf(text[at:])
		if c == digit && at == 0 {
			return n
		}
		if c == digit {
			return at
		}
		at += n
	}
	return len(text)
}

// lineWord is the length of the first word by the pattern of Llama 3 and Qwen, with at most most digits in a word.
func lineWord(text string, most int) int {
	if n := anyContraction(text); n > 0 {
		return n
	}
	c, first := classOf(text)
	if c == letter {
		return first + run(text[first:], letter)
	}
	if c != digit && text[0] != '\r' && text[0] != '\n' {
		if n := run(text[first:], letter); n > 0 {
			return first + n
		}
	}
	if c == digit {
		at := first
		for range most - 1 {
			next, n := class(0), 0
			if at < len(text) {
				next, n = classOf(text[at:])
			}
			if n == 0 || next != digit {
				break
			}
			at += n
		}
		return at
	}
	at := 0
	if text[0] == ' ' {
		at = 1
	}
	if n := run(text[at:], other); n > 0 {
		at += n
		for at < len(text) && (text[at] == '\r' || text[at] == '\n') {
			at++
		}
		return at
	}
	return spaces(text)
}

// spaces is the length of a word of white space: up to the last line end of the run, or the run without its last
// character if a word follows.
func spaces(text string) int {
	end := run(text, space)
	if line := strings.LastIndexAny(text[:end], "\r\n"); line >= 0 {
		return line + 1
	}
	if end < len(text) {
		if _, n := utf8.DecodeLastRuneInString(text[:end]); n < end {
			return end - n
		}
	}
	return end
}

// run is the length of the characters of one class that a text begins with.
func run(text string, of class) int {
	at := 0
	for at < len(text) {
		c, n := classOf(text[at:])
		if c != of {
			break
		}
		at += n
	}
	return at
}

// anyContraction is the length of a contraction in any case, or 0. The long s is a lower case of S.
func anyContraction(text string) int {
	if text[0] != '\'' {
		return 0
	}
	if strings.HasPrefix(text, "'ſ") {
		return len("'ſ")
	}
	for _, c := range contractions {
		if len(text) >= len(c) && strings.EqualFold(text[:len(c)], c) {
			return len(c)
		}
	}
	return 0
}
