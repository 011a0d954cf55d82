package service

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// Kinds of error that only HTTP has.
const (
	kindTooLarge     = "too_large"
	kindMalformed    = "malformed" // the body is not the JSON that openapi.json specifies
	kindUnauthorized = "unauthorized"
	kindNotFound     = "not_found"
	kindNoRoom       = "too_many_connections"
	kindBusy         = "busy"             // there is no room for the body
	kindSlow         = "too_slow"         // the body did not arrive in time
	kindForbidden    = "forbidden"        // the request comes from a web page of another origin
	kindWrongType    = "unsupported_type" // the body does not say that it is JSON
)

// ErrorBody is the body of every answer that is not a success.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail says what is wrong, and with which field.
type ErrorDetail struct {
	Kind    string `json:"kind"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// httpError is an error with its HTTP status.
type httpError struct {
	code   int
	detail ErrorDetail
}

// Error returns the message.
func (e httpError) Error() string { return e.detail.Message }

func malformed(field, message string) error {
	return httpError{http.StatusBadRequest, ErrorDetail{kindMalformed, field, message}}
}

// statusOf maps each kind of failure to its HTTP status.
var statusOf = map[string]int{
	rpc.KindBadCall:        http.StatusBadRequest,
	rpc.KindKeyConflict:    http.StatusConflict,
	rpc.KindQueueTimeout:   http.StatusServiceUnavailable,
	rpc.KindOverQuota:      http.StatusTooManyRequests,
	rpc.KindDraining:       http.StatusServiceUnavailable,
	rpc.KindInfrastructure: http.StatusInternalServerError,
	rpc.KindSessionLost:    http.StatusGone,
	rpc.KindSessionEnded:   http.StatusGone,
}

// asHTTP converts any error to an httpError.
func asHTTP(err error) httpError {
	var placed httpError
	if errors.As(err, &placed) {
		return placed
	}
	f := rpc.FromError(err)
	return httpError{statusOf[f.Kind], ErrorDetail{f.Kind, f.Field, f.Message}}
}

// refuse answers a request with an error.
func refuse(w http.ResponseWriter, err error) {
	e := asHTTP(err)
	if e.code == http.StatusServiceUnavailable || e.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	respond(w, e.code, ErrorBody{e.detail})
}

func respond(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		code, data = http.StatusInternalServerError,
			[]byte(`{"error":{"kind":"infrastructure","message":"write the answer as JSON"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(data, '\n'))
}

// fieldOf returns the field that a JSON error is about.
func fieldOf(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return wrong.Field
	}
	if _, rest, found := strings.Cut(err.Error(), "unknown field "); found {
		return strings.Trim(rest, `"`)
	}
	return ""
}
