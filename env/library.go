package env

import (
	"context"
	"strings"
)

// Library is an environment whose questions are answered from documents. The tools search and browse read it.
//
// Equal arguments give equal results, on every machine and in every process. Any text is a query and may be a title. An
// error means a failure, such as an index that cannot be read or a context that has ended. All methods are safe for
// concurrent use and take bounded time.
type Library interface {
	// Search returns the documents that fit a query best, the best first. Their number and the length of their texts
	// are bounded by the environment's settings.
	Search(ctx context.Context, query string) ([]Hit, error)
	// Document returns the document with a title. ok is false if there is none.
	Document(ctx context.Context, title string) (d Document, ok bool, err error)
	// PageTokens is the maximum of tokens of a document that a policy sees at once.
	PageTokens() int
}

// Hit is one result of a search.
type Hit struct{ Title, Snippet string }

// Document is a text with its title.
type Document struct{ Title, Text string }

// Marker is implemented by a Teacher whose answers are not simply compared with the gold as texts.
type Marker interface {
	// Right reports whether an answer to a task is right.
	Right(task Task, answer string) bool
}

// goldMark separates the golds of a question in Task.Answer. No gold holds it.
const goldMark = " | "

// JoinGolds writes several right answers as one Task.Answer. An environment that does so declares it
// (Declaration.Golds).
func JoinGolds(golds []string) string { return strings.Join(golds, goldMark) }

// SplitGolds reads what JoinGolds wrote.
func SplitGolds(answer string) []string { return strings.Split(answer, goldMark) }
