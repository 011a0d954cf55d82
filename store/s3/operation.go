package s3

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/store"
)

// Request is one request of the S3 protocol, without the bucket and without credentials. All of it is signed.
type Request struct {
	Method string            `json:"method"`
	Key    string            `json:"key,omitempty"` // "" for a question about the bucket
	Query  url.Values        `json:"query,omitempty"`
	Header map[string]string `json:"header,omitempty"` // by canonical name
}

// Operation is what a request does.
type Operation string

// The operations of a store.
const (
	OpGet            Operation = "get"
	OpHead           Operation = "head"
	OpPut            Operation = "put"
	OpPutIfAbsent    Operation = "put_if_absent"
	OpDelete         Operation = "delete"
	OpList           Operation = "list"
	OpBeginUpload    Operation = "begin_upload"
	OpPutPart        Operation = "put_part"
	OpListParts      Operation = "list_parts"
	OpCompleteUpload Operation = "complete_upload"
	OpAbortUpload    Operation = "abort_upload"
	OpListUploads    Operation = "list_uploads"
)

// shape says what the requests of an operation look like. They have each name of query and header, and may have those
// that end in "?", but no other.
type shape struct {
	operation Operation
	method    string
	bucket    bool // the request has no key
	query     string
	header    string
}

const content = "Content-Length Content-Md5 Content-Type?"

// shapes lists the operations. A request with content has an MD5, so that its URL permits no other content. Headers
// that make a server copy, encrypt or tag an object are in none of them.
var shapes = []shape{
	{OpGet, http.MethodGet, false, "", "Range?"},
	{OpHead, http.MethodHead, false, "", ""},
	{OpPut, http.MethodPut, false, "", content},
	{OpPutIfAbsent, http.MethodPut, false, "", content + " If-None-Match"},
	{OpDelete, http.MethodDelete, false, "", ""},
	{OpList, http.MethodGet, true, "list-type prefix delimiter? encoding-type? max-keys? start-after? " +
		"continuation-token? fetch-owner?", ""},
	{OpBeginUpload, http.MethodPost, false, "uploads", "Content-Length Content-Type?"},
	{OpPutPart, http.MethodPut, false, "partNumber uploadId", content},
	{OpListParts, http.MethodGet, false, "uploadId part-number-marker? max-parts?", ""},
	{OpCompleteUpload, http.MethodPost, false, "uploadId", content},
	{OpAbortUpload, http.MethodDelete, false, "uploadId", ""},
	{OpListUploads, http.MethodGet, true, "uploads prefix key-marker? upload-id-marker? delimiter? encoding-type? " +
		"max-uploads?", ""},
}

// Operations returns all operations.
func Operations() []Operation {
	out := make([]Operation, len(shapes))
	for i, s := range shapes {
		out[i] = s.operation
	}
	return out
}

// Operation returns what the request does, or an error that says which part of it belongs to no operation.
func (r Request) Operation() (Operation, error) {
	if r.Key != "" {
		if err := store.CheckKey(r.Key); err != nil {
			return "", err
		}
	}
	for _, s := range shapes {
		if s.method == r.Method && s.bucket == (r.Key == "") && has(s.query, r.Query.Has, keysOf(r.Query)) &&
			has(s.header, func(name string) bool { return r.Header[name] != "" }, keysOf(r.Header)) {
			if s.operation == OpPutIfAbsent && r.Header["If-None-Match"] != "*" {
				return "", fmt.Errorf("header If-None-Match of %s is %q: want *", r.Key, r.Header["If-None-Match"])
			}
			return s.operation, nil
		}
	}
	return "", fmt.Errorf("%s of %q with query %s and header %s: is no operation of a store", r.Method, r.Key,
		strings.Join(keysOf(r.Query), ", "), strings.Join(keysOf(r.Header), ", "))
}

// Target returns the key, or the prefix of what is listed.
func (r Request) Target() string {
	if r.Key != "" {
		return r.Key
	}
	return r.Query.Get("prefix")
}

// has reports whether the names are those that form lists.
func has(form string, there func(string) bool, names []string) bool {
	known := 0
	for name := range strings.FieldsSeq(form) {
		name, optional := strings.CutSuffix(name, "?")
		switch {
		case there(name):
			known++
		case !optional:
			return false
		}
	}
	return known == len(names)
}

func keysOf[V any, M ~map[string]V](m M) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
