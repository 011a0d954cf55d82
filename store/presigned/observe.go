package presigned

import (
	"net/http"
	"time"

	"github.com/ropewalk/ropewalk/store/s3"
)

// Observer is told of the questions that a presigner has answered. Its method is called concurrently and must not
// block.
type Observer interface {
	// Answered reports a question for a URL, or any question without a valid token: what the URL is for, the outcome
	// and the time that it took. Answers lists the pairs of operation and outcome.
	Answered(operation, outcome string, took time.Duration)
}

// outcome is how a presigner answered a question. All but signed are refusals.
type outcome string

const (
	signed       outcome = "signed"
	unauthorized outcome = "unauthorized" // no valid token
	malformed    outcome = "malformed"    // no request of a store
	forbidden    outcome = "forbidden"    // the policy does not permit it
	failed       outcome = "failed"       // the presigner could not sign
)

// unknown is the operation of a question that was refused before its operation was known.
const unknown s3.Operation = "unknown"

// Answers returns each pair of operation and outcome that an observer may be told of.
func Answers() (out [][2]string) {
	out = [][2]string{{string(unknown), string(unauthorized)}, {string(unknown), string(malformed)}}
	for _, operation := range s3.Operations() {
		for _, o := range []outcome{signed, forbidden, failed} {
			out = append(out, [2]string{string(operation), string(o)})
		}
	}
	return out
}

// statuses are the statuses of the answers.
var statuses = map[outcome]int{
	signed: http.StatusOK, unauthorized: http.StatusUnauthorized, malformed: http.StatusBadRequest,
	forbidden: http.StatusForbidden, failed: http.StatusInternalServerError,
}

func (s *Service) answered(operation s3.Operation, o outcome, began time.Time) {
	if s.o.Observer != nil {
		s.o.Observer.Answered(string(operation), string(o), time.Since(began))
	}
}
