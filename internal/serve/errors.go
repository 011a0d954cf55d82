package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Types of errors, as OpenAI names them.
const (
	typeInvalid  = "invalid_request_error"
	typeAuth     = "authentication_error"
	typeNotFound = "not_found_error"
	typeLimit    = "rate_limit_error"
	typeServer   = "server_error"
)

// apiError is an error that a client is told, in OpenAI's form.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"` // the field at fault
	Code    *string `json:"code"`
	after   int     // seconds until another attempt may help; 0 = no advice
}

// Error implements error.
func (e *apiError) Error() string { return e.Message }

// invalid is the error of a field's value.
func invalid(param, format string, args ...any) *apiError {
	e := &apiError{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: typeInvalid}
	if param != "" {
		e.Param = &param
		e.Message = param + ": " + e.Message
	}
	return e
}

// coded adds a code that programs can tell the error by.
func (e *apiError) coded(code string) *apiError {
	e.Code = &code
	return e
}

// fault is an error that is not the client's.
func fault(status int, kind, format string, args ...any) *apiError {
	return &apiError{status: status, Message: fmt.Sprintf(format, args...), Type: kind}
}

var (
	errDraining = fault(http.StatusServiceUnavailable, typeServer, "the server is shutting down").coded("draining")
	errBroken   = fault(http.StatusInternalServerError, typeServer, "the engine failed").coded("engine_failed")
)

func errFull(rows int) *apiError {
	e := fault(http.StatusTooManyRequests, typeLimit, "%d responses are waiting already", rows).coded("queue_full")
	e.after = 1
	return e
}

// asAPI turns an error into one that a client is told.
func asAPI(err error) *apiError {
	var known *apiError
	if errors.As(err, &known) {
		return known
	}
	return fault(http.StatusInternalServerError, typeServer, "%v", err)
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, e *apiError) {
	if e.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.after))
	}
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	respond(w, e.status, map[string]any{"error": e})
}

// respond answers with JSON.
func respond(w http.ResponseWriter, status int, body any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeLimit)) // not every writer has deadlines
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(encode(body))
}

// encode is JSON without the escapes that are for web pages.
func encode(body any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return []byte(`{"error":{"message":"the answer cannot be encoded","type":"server_error"}}` + "\n")
	}
	return b.Bytes()
}
