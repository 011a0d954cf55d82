package searchqa

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// family is a kind of question.
type family struct {
	name  string
	about kind // of the subject
	level int  // facts that the answer needs
	// text is the question; %s is the subject's title.
	text string
	// path leads from the subject to the answer; nil where ask makes the question itself.
	path []relation
	// ask makes the question about a subject; ok is false if there is none.
	ask func(c *corpus, f family, subject int) (q question, ok bool)
}

// question is a task in this environment's own form. The task's Spec is its JSON.
type question struct {
	Family string   `json:"family"`
	Text   string   `json:"text"`
	About  []string `json:"about"` // titles of the subjects
	Golds  []string `json:"golds"` // right answers, the usual one first
	// Documents are the titles of the documents that answer the question, in the order in which one needs them.
	Documents []string `json:"documents"`
	Reads     []string `json:"reads"`  // what one looks for in each document
	Points    []string `json:"points"` // the sentences with the facts; a long answer is grounded if it states them
}

// families lists the families of questions.
var families = []family{
	{name: "birthplace", about: person, level: 1, text: "Where was %s born?", path: []relation{born}},
	{name: "birth_river", about: person, level: 2, text: "On which river lies the birthplace of %s?",
		path: []relation{born, lies}},
	{name: "author_birthplace", about: work, level: 2, text: "Where was the author of %s born?",
		path: []relation{author, born}},
	{name: "founder_birthplace", about: company, level: 2, text: "Where was the founder of %s born?",
		path: []relation{founder, born}},
	{name: "employer_seat", about: person, level: 2, text: "Which city is the seat of the company that employed %s?",
		path: []relation{employs, seat}},
	{name: "author_country", about: work, level: 3, text: "In which country was the author of %s born?",
		path: []relation{author, born, within}},
	{name: "founder_river", about: company, level: 3, text: "On which river lies the birthplace of the founder of %s?",
		path: []relation{founder, born, lies}},
	{name: "older", about: person, level: 2, text: "Who was born first, %s or %s?", ask: askOlder},
	{name: "age", about: work, level: 2, text: "How many years after the birth of its author did %s appear?",
		ask: askAge},
	{name: "works", about: person, level: 2, text: "Which two works are by %s?", ask: askWorks},
	{name: "river_cities", about: river, level: 3, text: "Which cities lie on the %s? Name all.", ask: askCities},
	{name: "person_profile", about: person, level: 3, text: "Write what is known about %s and the place of birth.",
		ask: askPerson},
	{name: "company_profile", about: company, level: 3, text: "Write what is known about %s and its founder.",
		ask: askCompany},
}

// Families that are the default: two of them train, and all with short answers evaluate.
var (
	trained = []string{"birth_river", "author_birthplace"}
	long    = []string{"person_profile", "company_profile"} // want long answers
)

func familyNames() []string {
	out := make([]string, len(families))
	for i, f := range families {
		out[i] = f.name
	}
	return out
}

func familyNamed(name string) (family, bool) {
	i := slices.IndexFunc(families, func(f family) bool { return f.name == name })
	if i < 0 {
		return family{}, false
	}
	return families[i], true
}

// question makes the question of a family about a subject.
func (c *corpus) question(f family, subject int) (question, bool) {
	if f.ask != nil {
		return f.ask(c, f, subject)
	}
	e := c.entities[subject]
	q := question{Family: f.name, Text: fmt.Sprintf(f.text, e.title), About: []string{e.title}}
	at := subject
	for _, r := range f.path {
		next, known := c.entities[at].links[r]
		if !known {
			return q, false
		}
		q.needs(c, at, c.entities[next].name, c.fact(at, r))
		at = next
	}
	q.Golds = c.names(at)
	return q, true
}

// needs adds a document that the answer needs.
func (q *question) needs(c *corpus, i int, read, fact string) {
	q.Documents = append(q.Documents, c.entities[i].title)
	q.Reads, q.Points = append(q.Reads, read), append(q.Points, c.point(i, fact))
}

// names lists the forms of an entity's name that are right answers.
func (c *corpus) names(i int) []string {
	e := c.entities[i]
	out := []string{e.name}
	switch e.kind {
	case river:
		out = append(out, e.title, e.name+" River")
	case city:
		if in, known := e.links[within]; known {
			out = append(out, e.name+", "+c.entities[in].name)
		}
	case work:
		out = append(out, strings.TrimPrefix(e.name, "The "))
	}
	return out
}

// askOlder compares a person with another one whose subject belongs to the same split.
func askOlder(c *corpus, f family, subject int) (q question, ok bool) {
	people := c.of[person]
	at := slices.Index(people, subject)
	a := c.entities[subject]
	for i := 1; i < len(people); i++ {
		other := people[(at+i)%len(people)]
		b := c.entities[other]
		if b.year == a.year || heldOut(b.title) != heldOut(a.title) {
			continue
		}
		q = question{Family: f.name, Text: fmt.Sprintf(f.text, a.title, b.title), About: []string{a.title, b.title}}
		q.needs(c, subject, strconv.Itoa(a.year), c.when(subject))
		q.needs(c, other, strconv.Itoa(b.year), c.when(other))
		first := subject
		if b.year < a.year {
			first = other
		}
		q.Golds = c.names(first)
		return q, true
	}
	return q, false
}

// askAge subtracts two years. A policy that can run Python may compute it.
func askAge(c *corpus, f family, subject int) (q question, ok bool) {
	e := c.entities[subject]
	by := e.links[author]
	q = question{Family: f.name, Text: fmt.Sprintf(f.text, e.title), About: []string{e.title}}
	q.needs(c, subject, c.entities[by].name, c.fact(subject, author))
	if c.shape.brief {
		q.Points = append(q.Points, c.point(subject, c.when(subject)))
	}
	q.needs(c, by, strconv.Itoa(c.entities[by].year), c.when(by))
	years := strconv.Itoa(e.year - c.entities[by].year)
	q.Golds = []string{years, years + " years"}
	return q, true
}

// askWorks asks for both works of a person who has exactly two.
func askWorks(c *corpus, f family, subject int) (question, bool) {
	return c.all(f, subject, author, 2, 2)
}

// askCities asks for the cities on a river that has two or three.
func askCities(c *corpus, f family, subject int) (question, bool) {
	return c.all(f, subject, lies, 2, 3)
}

// all asks for everything that has a relation to the subject, if that is from least to most things. The answer may name
// them in any order.
func (c *corpus) all(f family, subject int, r relation, least, most int) (question, bool) {
	e := c.entities[subject]
	items := c.back[r][subject]
	q := question{Family: f.name, Text: fmt.Sprintf(f.text, e.title), About: []string{e.title}}
	if len(items) < least || len(items) > most {
		return q, false
	}
	var names []string
	for _, i := range items {
		q.needs(c, i, e.name, c.fact(i, r))
		names = append(names, c.entities[i].name)
	}
	q.Golds = orders(names)
	return q, true
}

// orders returns every order of two or three names, written with "and" and with commas alone.
func orders(names []string) (out []string) {
	var permute func(done, left []string)
	permute = func(done, left []string) {
		if len(left) == 0 {
			last := len(done) - 1
			out = append(out, strings.Join(done[:last], ", ")+" and "+done[last], strings.Join(done, ", "))
			return
		}
		for i := range left {
			permute(append(slices.Clone(done), left[i]), slices.Delete(slices.Clone(left), i, i+1))
		}
	}
	permute(nil, names)
	return out
}

// askPerson asks for all facts about a person, and on which river the birthplace lies.
func askPerson(c *corpus, f family, subject int) (question, bool) {
	return c.profile(f, subject, []relation{born, employs}, born, lies)
}

// askCompany asks for all facts about a company, and where its founder was born.
func askCompany(c *corpus, f family, subject int) (question, bool) {
	return c.profile(f, subject, []relation{founder, seat}, founder, born)
}

// profile asks for a long answer. Its gold is the facts in one text.
func (c *corpus) profile(f family, subject int, facts []relation, through, then relation) (question, bool) {
	e := c.entities[subject]
	q := question{Family: f.name, Text: fmt.Sprintf(f.text, e.title), About: []string{e.title}}
	next := e.links[through]
	q.needs(c, subject, c.entities[next].name, c.fact(subject, facts[0]))
	for _, r := range facts[1:] {
		q.Points = append(q.Points, c.point(subject, c.fact(subject, r)))
	}
	q.needs(c, next, c.name(next, then), c.fact(next, then))
	q.Golds = []string{strings.Join(q.Points, " ")}
	return q, true
}
