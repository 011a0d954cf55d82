// Package presigned is a store without credentials. A *presigner* holds the credentials and runs next to trusted
// workers. Before each request a *client* asks the presigner for a *presigned URL*: the right to send this one request
// within Life. The presigner's *policy* says which operations a client may use on which keys. Content goes directly
// between the client and the S3 server.
//
//	worker ──(token, method, key, headers)──▶ presigner ──▶ URL
//	worker ──(URL, content)─────────────────▶ S3 server
//
// A presigned URL is a secret. It appears in the presigner's answer and in the request to the S3 server, and in no log,
// error or object.
package presigned
