package reward

import "strings"

// Tags are how a model's text says what its parts are: <think>, <answer>, <tool_call> and so on.
// Two readings serve all rewards: Blocks finds what is inside pairs and skips the rest, Wrapped
// asks that there be no rest. Both take time linear in the text for a fixed number of tags,
// whatever the text holds: an opening tag that is never closed is looked for once, not at each
// place that opens it.

// Block is one pair of tags.
type Block struct {
	Tag        string // its name, without brackets
	Content    string
	Start, End int // the pair with its tags is text[Start:End]
}

// Blocks returns the closed pairs of the named tags from left to right. A pair runs from an opening
// tag to the first closing tag of its name; tags inside it are content. Names are matched as
// written.
func Blocks(text string, tags ...string) []Block {
	var out []Block
	unclosed := make([]bool, len(tags))
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			return out
		}
		at += i
		b, ok := blockAt(text, at, tags, unclosed)
		if !ok {
			at++
			continue
		}
		out = append(out, b)
		at = b.End
	}
}

// blockAt reads the pair that opens at a place; unclosed remembers the tags that no later place can
// close.
func blockAt(text string, at int, tags []string, unclosed []bool) (Block, bool) {
	for k, tag := range tags {
		open := "<" + tag + ">"
		if unclosed[k] || !strings.HasPrefix(text[at:], open) {
			continue
		}
		from := at + len(open)
		n := strings.Index(text[from:], "</"+tag+">")
		if n < 0 {
			unclosed[k] = true
			return Block{}, false
		}
		return Block{Tag: tag, Content: text[from : from+n], Start: at, End: from + n + len(open) + 1}, true
	}
	return Block{}, false
}

// Wrapped reports whether a text is nothing but closed pairs of the named tags, at least one, with
// white space between them and none of these tags inside another.
func Wrapped(text string, tags ...string) bool {
	blocks, at := Blocks(text, tags...), 0
	for _, b := range blocks {
		if !blank(text[at:b.Start]) || holdsTag(b.Content, tags) {
			return false
		}
		at = b.End
	}
	return len(blocks) > 0 && blank(text[at:])
}

func blank(text string) bool { return strings.TrimFunc(text, isSpace) == "" }

// holdsTag reports whether a text holds an opening or closing tag of one of the names.
func holdsTag(text string, tags []string) bool {
	for _, tag := range tags {
		if strings.Contains(text, "<"+tag+">") || strings.Contains(text, "</"+tag+">") {
			return true
		}
	}
	return false
}
