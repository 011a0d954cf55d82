// Package summary has a run's first policy sum up the pages that the tool browse shows, for a question. A Writer makes
// requests of documents, has the model answer them, and reads the answers.
//
// Glossary. The *page* is the document as far as the model reads it. A *request* is a prompt in the model's own chat
// format: the question, the page, and what to do. A *summary* is the model's most likely response, without the token
// that ends it. It follows from the request and the weights alone, so a repeated attempt writes the same bytes.
//
//	question, document ─fit→ request ─Generate (temperature 0)→ tokens ─→ summary
package summary
