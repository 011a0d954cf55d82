package protocol

import (
	"slices"
	"strings"
)

// A policy drafts calls and answers while it thinks. They are neither: Parse reads what is outside of reasoning.
//
// Reasoning is what <think> and the protocol's own tags for it (Spec.Reasoning) enclose. It has no end where such a tag
// is not closed. The first closing tag without an opening one ends reasoning that the prompt, or nothing, has opened.
// Tags inside a call or an answer are its text.

// reasoned is a text divided into reasoning and the rest.
type reasoned struct {
	found bool     // there is reasoning in tags
	first string   // the first reasoning
	rest  string   // what is outside of all reasoning
	spans [][2]int // where the rest is in the text
}

// reasonScan divides a text. from is the beginning of the span that is outside of reasoning, and at where the scan is.
// opened and closed are where the next tags of reasoning are, or the end of the text.
type reasonScan struct {
	text           string
	opens, closes  []string
	from, at       int
	opened, closed int
	unclosed       map[string]bool // tags of calls that nothing further on closes
	ended          map[string]bool // closing tags that have ended reasoning without an opening tag
	out            reasoned
}

// reason divides a text.
func (s Spec) reason(text string) reasoned {
	scan := reasonScan{text: text, opens: []string{thinkOpen}, closes: []string{thinkClose}, opened: -1, closed: -1,
		unclosed: map[string]bool{}, ended: map[string]bool{}}
	if s.Reasoning != "" {
		scan.opens, scan.closes = append(scan.opens, "<"+s.Reasoning+">"), append(scan.closes, "</"+s.Reasoning+">")
	}
	for scan.next(s.Tags) {
	}
	var rest strings.Builder
	for _, span := range scan.out.spans {
		rest.WriteString(text[span[0]:span[1]])
	}
	scan.out.rest = rest.String()
	return scan.out
}

// next steps over a call, an answer or reasoning. It returns false at the end of the text.
func (r *reasonScan) next(tags []string) bool {
	if r.opened < r.at {
		r.opened, _ = nextOf(r.text, r.at, r.opens)
	}
	if r.closed < r.at {
		r.closed, _ = nextOf(r.text, r.at, r.closes)
	}
	limit := min(r.opened, r.closed)
	if limit == len(r.text) {
		r.out.spans = append(r.out.spans, [2]int{r.from, limit})
		return false
	}
	if end, ok := r.block(tags, limit); ok {
		r.at = end
		return true
	}
	if r.closed < r.opened {
		_, tag := nextOf(r.text, r.closed, r.closes)
		if r.at = r.closed + len(tag); r.ended[tag] {
			return true
		}
		r.think(r.from, r.closed)
		r.out.spans, r.ended[tag] = nil, true
	} else {
		_, tag := nextOf(r.text, r.opened, r.opens)
		r.out.spans = append(r.out.spans, [2]int{r.from, r.opened})
		inside := r.opened + len(tag)
		end, closing := nextOf(r.text, inside, []string{"</" + tag[1:]})
		r.think(inside, end)
		r.at = end + len(closing)
	}
	r.from = r.at
	return true
}

// think notes the first reasoning.
func (r *reasonScan) think(from, to int) {
	if !r.out.found {
		r.out.found, r.out.first = true, r.text[from:to]
	}
}

// block returns the end of the first whole call or answer that begins before a limit. Where reasoning ends after a tag
// was mentioned, and the tag opens once more, the mention begins nothing.
func (r *reasonScan) block(tags []string, limit int) (end int, ok bool) {
	for _, name := range tags {
		open, closing := "<"+name+">", "</"+name+">"
		if strings.HasPrefix(name, fence) {
			open, closing = name+"\n", "\n"+fence
		}
		i := strings.Index(r.text[r.at:limit], open)
		if i < 0 || r.unclosed[name] || slices.Contains(r.closes, closing) {
			continue
		}
		inside := r.at + i + len(open)
		content, _, whole := strings.Cut(r.text[inside:], closing)
		if r.unclosed[name] = !whole; !whole {
			continue
		}
		if thinks, _ := nextOf(content, 0, r.closes); thinks < len(content) && strings.Contains(content, open) {
			continue
		}
		limit, end, ok = r.at+i, inside+len(content)+len(closing), true
	}
	return end, ok
}

// nextOf returns the first of some tags from a place on, and where it is; without one, the end of the text.
func nextOf(text string, from int, tags []string) (at int, tag string) {
	at = len(text)
	for _, t := range tags {
		if i := strings.Index(text[from:at], t); i >= 0 {
			at, tag = from+i, t
		}
	}
	return at, tag
}

// Spoken returns what a text says outside of reasoning.
func (s Spec) Spoken(text string) string { return s.reason(text).rest }

// thought returns the reasoning of a response: what its tags enclose or, without them, the text before a call or a box.
func (r reasoned) thought(before string) string {
	if r.found {
		return r.first
	}
	before, _, _ = strings.Cut(before, boxOpen)
	return before
}
