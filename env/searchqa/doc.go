// Package searchqa is a library of generated documents with questions about them, which a policy answers by searching.
//
// A *corpus* is a set of *documents*. Each *entity* (a person, a city, a river, a country, a company, a work) has one
// document, whose sentences state *facts*: where a person was born, on which river a city lies. All facts fit together.
// *Notes* and *lists* are documents that name entities and state nothing that a question asks for; they distract.
//
// A *family* is a kind of question. A *subject* is an entity that a question names. The *level* of a question is the
// number of facts that its answer needs. A question has several *golds*: texts that are right answers. Its *points* are
// the sentences with its facts, from which a judge can tell whether a long answer is grounded.
//
//	corpusOf(shape) ─ documents → index: Search (bleve) and Document, for the tools search and browse
//	       └─ questions of each family, divided by their subject → Task → Reset → Step(answer)
//	Demonstrate: search for a document, read it if the result is too short, go on to the next one, answer
//
// One package serves two environments: search_qa, whose policies search, and deep_research, whose policies also run
// Python. Source: HotpotQA and 2WikiMultiHopQA for the families of questions, and 003 §4.4 for the sizes: ten results
// of a search, and 6,000 tokens of a page.
package searchqa
