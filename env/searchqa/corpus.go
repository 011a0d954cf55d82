package searchqa

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/internal/seed"
)

// kind is a kind of entity, or of a document that is about none.
type kind string

const (
	person  kind = "person"
	city    kind = "city"
	river   kind = "river"
	country kind = "country"
	company kind = "company"
	work    kind = "work"
	note    kind = "note"
	listing kind = "list"
)

// relation names a fact about an entity whose value is another entity.
type relation string

const (
	born    relation = "born in"
	lies    relation = "lies on"
	within  relation = "is in"
	capital relation = "has the capital"
	author  relation = "is by"
	founder relation = "was founded by"
	seat    relation = "has its seat in"
	employs relation = "works for"
)

// entity is what a document is about.
type entity struct {
	kind  kind
	name  string // as questions and other documents write it
	title string // of its document; unique
	links map[relation]int
	year  int    // of birth, foundation or publication
	word  string // occupation, kind of work, language
	// sentences are its document.
	sentences []string
}

// shape holds the settings that determine a corpus.
type shape struct {
	documents int
	brief     bool
}

// corpus is a set of documents. It never changes.
type corpus struct {
	shape    shape
	entities []entity
	of       map[kind][]int
	// back holds, for each relation, the entities that have it to an entity, in order.
	back map[relation]map[int][]int
	// titles finds a document by its title in small letters.
	titles map[string]int

	indexed sync.Once
	index   *index
	broken  error
}

// Limits of the number of documents. With fewer, a family has no question for one of the splits; with more, names run
// out.
const (
	fewestDocuments = 200
	mostDocuments   = 20_000
	fullSize        = 6000
)

// corpora holds the corpora of this process. A worker opens its environment for each stage, and a full-size corpus
// takes a noticeable part of a second to make.
var corpora struct {
	sync.Mutex
	made map[shape]*corpus
}

// corpusOf returns the corpus of a shape. Equal shapes have the same one.
func corpusOf(s shape) *corpus {
	corpora.Lock()
	defer corpora.Unlock()
	if c, ok := corpora.made[s]; ok {
		return c
	}
	c := build(s)
	if corpora.made == nil {
		corpora.made = map[shape]*corpus{}
	}
	corpora.made[s] = c
	return c
}

// counts divides the documents among the kinds; the rest are notes.
func (s shape) counts() map[kind]int {
	share := func(parts, least, most int) int { return min(max(s.documents*parts/1000, least), most) }
	return map[kind]int{
		country: share(8, 4, len(countryStart)*len(countryEnds)),
		river:   share(30, 8, len(riverStarts)*len(riverEnds)),
		city:    share(100, 20, len(cityStarts)*len(cityEnds)),
		company: share(90, 18, len(lastNames)*len(companyEnds)),
		work:    share(220, 40, len(adjectives)*len(nouns)),
		person:  share(370, 70, len(firstNames)*len(lastNames)),
		listing: len(listed),
	}
}

// builder makes a corpus.
type builder struct {
	*corpus
	rng *rand.Rand
}

// build makes a corpus: names first, then links, then sentences. Each part has a random stream of its own.
func build(s shape) *corpus {
	c := &corpus{shape: s, of: map[kind][]int{}, back: map[relation]map[int][]int{}, titles: map[string]int{}}
	b := &builder{c, seed.Rand("searchqa names", uint64(s.documents))}
	counts := s.counts()
	b.add(country, counts[country], pairs(countryStart, "", countryEnds))
	b.add(river, counts[river], pairs(riverStarts, "", riverEnds))
	b.add(city, counts[city], pairs(cityStarts, "", cityEnds))
	b.add(person, counts[person], pairs(firstNames, " ", lastNames))
	b.add(company, counts[company], pairs(lastNames, " ", companyEnds))
	b.add(work, counts[work], pairs(pairs([]string{"The"}, " ", adjectives), " ", nouns))
	b.rng = seed.Rand("searchqa facts", uint64(s.documents))
	b.link()
	b.addNotes(s.documents - len(c.entities) - counts[listing])
	b.addLists()
	b.rng = seed.Rand("searchqa sentences", uint64(s.documents))
	for i := range c.entities {
		c.entities[i].sentences = b.sentences(i)
	}
	return c
}

// add makes n entities with names from a list.
func (b *builder) add(k kind, n int, names []string) {
	b.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(n, len(names))] {
		title := name
		if k == river {
			title = "River " + name
		}
		b.put(entity{kind: k, name: name, title: title, links: map[relation]int{}})
	}
}

// put adds an entity whose title is new.
func (b *builder) put(e entity) {
	key := strings.ToLower(e.title)
	if _, taken := b.titles[key]; taken {
		panic(fmt.Sprintf("searchqa: two documents have the title %s", e.title)) // the lists of names exclude it
	}
	b.titles[key] = len(b.entities)
	b.of[e.kind] = append(b.of[e.kind], len(b.entities))
	b.entities = append(b.entities, e)
}

// any returns a random entity of a kind.
func (b *builder) any(k kind) int { return b.of[k][b.rng.IntN(len(b.of[k]))] }

// set states a fact.
func (b *builder) set(from int, r relation, to int) {
	b.entities[from].links[r] = to
	if b.back[r] == nil {
		b.back[r] = map[int][]int{}
	}
	b.back[r][to] = append(b.back[r][to], from)
}

// link draws the facts. A river flows through one country, and its cities are in that country. A work appears in its
// author's lifetime, a company is founded in its founder's.
func (b *builder) link() {
	for _, r := range b.of[river] {
		b.set(r, within, b.any(country))
	}
	for _, c := range b.of[city] {
		r := b.any(river)
		b.set(c, lies, r)
		b.set(c, within, b.entities[r].links[within])
		b.entities[c].year = 900 + b.rng.IntN(600)
	}
	for i, c := range b.of[country] {
		b.entities[c].word = languages[i%len(languages)]
		if inside := b.back[within][c]; len(inside) > 0 {
			for _, e := range inside {
				if b.entities[e].kind == city {
					b.set(c, capital, e)
					break
				}
			}
		}
	}
	for _, p := range b.of[person] {
		b.set(p, born, b.any(city))
		b.entities[p].year = 1800 + b.rng.IntN(120)
		b.entities[p].word = occupations[b.rng.IntN(len(occupations))]
	}
	for _, c := range b.of[company] {
		p := b.any(person)
		b.set(c, founder, p)
		b.set(c, seat, b.any(city))
		b.entities[c].year = b.entities[p].year + 25 + b.rng.IntN(25)
	}
	for _, p := range b.of[person] {
		b.set(p, employs, b.any(company))
	}
	for _, w := range b.of[work] {
		p := b.any(person)
		b.set(w, author, p)
		b.entities[w].year = b.entities[p].year + 20 + b.rng.IntN(40)
		b.entities[w].word = workKinds[b.rng.IntN(len(workKinds))]
	}
}
