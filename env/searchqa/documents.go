package searchqa

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Document is what a policy reads in one piece.
type Document struct{ Title, Text string }

// document returns the document of an entity.
func (c *corpus) document(i int) Document {
	e := c.entities[i]
	return Document{Title: e.title, Text: strings.Join(e.sentences, " ")}
}

// name returns the name of a linked entity.
func (c *corpus) name(of int, r relation) string { return c.entities[c.entities[of].links[r]].name }

// fact returns the sentence that states a fact. A question's points are such sentences.
func (c *corpus) fact(i int, r relation) string {
	e := c.entities[i]
	if c.shape.brief {
		return capitalised(string(r)) + " " + c.name(i, r) + "."
	}
	switch r {
	case born:
		return fmt.Sprintf("%s was born in %s in %d.", e.name, c.name(i, r), e.year)
	case lies:
		return fmt.Sprintf("%s lies on the River %s.", e.name, c.name(i, r))
	case author:
		return fmt.Sprintf("%s is a %s by %s, which appeared in %d.", e.name, e.word, c.name(i, r), e.year)
	case founder:
		return fmt.Sprintf("%s was founded by %s in %d.", e.name, c.name(i, r), e.year)
	}
	return fmt.Sprintf("%s %s %s.", e.title, r, c.name(i, r))
}

// point returns a fact in a form that can be read alone.
func (c *corpus) point(i int, fact string) string {
	if c.shape.brief {
		return c.entities[i].title + ": " + fact
	}
	return fact
}

// when returns the sentence that states an entity's year.
func (c *corpus) when(i int) string {
	e := c.entities[i]
	if !c.shape.brief {
		switch e.kind {
		case person:
			return c.fact(i, born)
		case company:
			return c.fact(i, founder)
		case work:
			return c.fact(i, author)
		}
	}
	return "Dated " + strconv.Itoa(e.year) + "."
}

func capitalised(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// sentences writes the document of an entity.
func (b *builder) sentences(i int) []string {
	e := b.entities[i]
	if e.kind == note || e.kind == listing {
		return e.sentences
	}
	facts := b.facts(i)
	if b.shape.brief && len(facts) > 0 {
		return facts
	}
	out := []string{b.opening(i)}
	for _, f := range facts {
		out = append(out, b.filling(e.name)...)
		out = append(out, f)
	}
	return append(out, b.filling(e.name)...)
}

// facts lists an entity's facts. The first sentence of a document does not state them, except for works, so that a
// result of a search rarely shows them all.
func (b *builder) facts(i int) []string {
	var of []relation
	switch b.entities[i].kind {
	case person:
		of = []relation{born, employs}
	case city:
		of = []relation{lies, within}
	case river:
		of = []relation{within}
	case country:
		of = []relation{capital}
	case company:
		of = []relation{founder, seat}
	case work:
		of = []relation{author}
	}
	var out []string
	for _, r := range of {
		if _, known := b.entities[i].links[r]; known {
			out = append(out, b.fact(i, r))
		}
	}
	if b.shape.brief && b.entities[i].year > 0 && b.entities[i].kind != city {
		out = append(out, b.when(i))
	}
	return out
}

// opening introduces an entity.
func (b *builder) opening(i int) string {
	e := b.entities[i]
	switch e.kind {
	case person:
		return fmt.Sprintf("%s was a %s and a member of several learned societies.", e.name, e.word)
	case city:
		return fmt.Sprintf("%s is a city with a market that is first mentioned in %d.", e.name, e.year)
	case river:
		return fmt.Sprintf("The River %s is about %d kilometres long.", e.name, 40+b.rng.IntN(600))
	case country:
		return fmt.Sprintf("%s is a country whose people speak %s.", e.name, e.word)
	case company:
		return fmt.Sprintf("%s is a company that sells its goods abroad.", e.name)
	}
	return fmt.Sprintf("%s has been translated into %d languages.", e.name, 2+b.rng.IntN(20))
}

// fillings are sentences that state nothing that a question asks for. %s is the name of the document's entity.
var fillings = []string{
	"Most of what is known about %s comes from letters.",
	"A long dispute about the archives of %s ended in a settlement.",
	"The accounts that mention %s differ in small details.",
	"A plaque that remembers %s was put up a century later.",
	"Visitors often confuse %s with others of a similar name.",
	"Several museums hold papers that concern %s.",
	"An exhibition about %s toured the provinces for two years.",
	"Newspapers of the time wrote little about %s.",
	"The weather of that year is described in a diary that mentions %s.",
	"A stamp that shows %s was printed in small numbers.",
	"The first catalogue that lists %s was lost in a fire.",
	"Schools in the region still teach a song about %s.",
}

// filling returns up to four of them.
func (b *builder) filling(name string) []string {
	var out []string
	for _, f := range b.rng.Perm(len(fillings))[:b.rng.IntN(5)] {
		out = append(out, fmt.Sprintf(fillings[f], name))
	}
	return out
}

// notes are the forms of documents that name entities and state no fact about them.
var notes = []struct {
	about     kind
	title     string // %s is the name
	brief     string // %s is a city
	sentences []string
}{
	{person, "%s Prize", "Held in %s.", []string{
		"The %[1]s Prize is awarded in %[2]s every third year.",
		"It is named after %[1]s, and the winner gives a speech.",
	}},
	{person, "Letters to %s", "Kept in %s.", []string{
		"The letters to %[1]s are kept in a library in %[2]s.",
		"None of the answers of %[1]s has survived.",
	}},
	{city, "%s Fair", "Held near %s.", []string{
		"The %[1]s Fair was moved to %[2]s after a flood.",
		"It is the oldest fair of its kind, and still carries the name of %[1]s.",
	}},
	{work, "Essay on %s", "Printed in %s.", []string{
		"An essay on %[1]s was printed in %[2]s without the name of its writer.",
		"The essay says more about %[2]s than about %[1]s.",
	}},
	{company, "%s strike", "Ended in %s.", []string{
		"The strike at %[1]s began in a warehouse and ended in %[2]s.",
		"Neither side of the strike at %[1]s kept its promises.",
	}},
}

// addNotes adds n notes. A second note of a form about the same entity has a number in its title.
func (b *builder) addNotes(n int) {
	for i := range n {
		form := notes[i%len(notes)]
		about, where := b.entities[b.any(form.about)].name, b.entities[b.any(city)].name
		title := fmt.Sprintf(form.title, about)
		if _, taken := b.titles[strings.ToLower(title)]; taken {
			title = fmt.Sprintf("%s (%d)", title, i)
		}
		e := entity{kind: note, name: title, title: title}
		if b.shape.brief {
			e.sentences = []string{fmt.Sprintf(form.brief, where)}
		} else {
			for _, s := range form.sentences {
				e.sentences = append(e.sentences, fmt.Sprintf(s, about, where))
				e.sentences = append(e.sentences, b.filling(title)...)
			}
		}
		b.put(e)
	}
}

// listed are the kinds whose names have a list. The longest lists have more than 6,000 tokens.
var listed = []kind{person, city, river, company, work}

// addLists adds the lists of names.
func (b *builder) addLists() {
	for _, k := range listed {
		names := make([]string, len(b.of[k]))
		for i, at := range b.of[k] {
			names[i] = b.entities[at].name
		}
		slices.Sort(names)
		title := fmt.Sprintf("Index of names: %s", k)
		text := "Names: " + strings.Join(names, ", ") + "."
		if b.shape.brief {
			text = "A register."
		}
		b.put(entity{kind: listing, name: title, title: title, sentences: []string{text}})
	}
}
