// Package openai asks servers that speak OpenAI's chat completions, such as vLLM, SGLang, llama.cpp and hosted ones.
//
// Glossary. A *server* is an address, an optional key and the model to ask. An *attempt* is one request. The *kind* of
// an error says whose fault it is and whether another attempt may help. A reply is *accepted* if the caller can use
// it; other replies are asked for again with the next seed.
//
//	Client.Chat: attempt → reply → accept ─ no, or an error that may pass → pause → attempt …
//
// Every attempt is bounded in time and in bytes. Keys are references that are resolved when a client is opened; they
// are in no error and no reply.
package openai
