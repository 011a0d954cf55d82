package recipes

import (
	"slices"
	"strings"
)

// The file of a built-in recipe begins with a comment. The comment describes the file in free text. Then it lists the
// source and the differences from the source, one item for each. The items apply to every recipe that extends the file.
// The free text applies to this file only.

// sourceItem begins the item that names the source.
const sourceItem = "- Source: "

// Comment returns the comment of a built-in recipe without the comment marks. The result begins with the file's free
// text, or with the recipe's description if the file has no free text. The file's items follow, then the items of the
// files that it extends. If several files name a source, the nearest one counts.
func Comment(name string) string {
	text, ok := Source(name)
	if !ok {
		return ""
	}
	words, items := comment(string(text))
	if words == "" {
		if r, err := Resolve(name, "", nil, nil, nil); err == nil {
			words = r.Recipe.Description + "."
		}
	}
	all := append([]string{words}, inheritedItems(name, items)...)
	return strings.Join(all, "\n")
}

// inheritedItems appends to a file's items the items of the files that it extends.
func inheritedItems(name string, items []string) []string {
	for _, base := range extendedBy(name) {
		text, _ := embedded(base)
		_, more := comment(string(text))
		for _, item := range inheritedItems(base, more) {
			isSource := func(other string) bool { return strings.HasPrefix(other, sourceItem) }
			if !slices.Contains(items, item) && !(isSource(item) && slices.ContainsFunc(items, isSource)) {
				items = append(items, item)
			}
		}
	}
	return items
}

// extendedBy returns the names of the files that a built-in file extends.
func extendedBy(name string) []string {
	text, ok := embedded(name)
	if !ok {
		return nil
	}
	d := newDecoder(fileOf(name))
	doc := d.document(text)
	value := lookup(doc, extendsField)
	if value == nil {
		return nil
	}
	var names []string
	for _, n := range d.extended(value) {
		names = append(names, n.Value)
	}
	return names
}

// comment splits the comment at the beginning of a file into its free text and its items.
func comment(text string) (words string, items []string) {
	var free []string
	for line := range strings.SplitSeq(text, "\n") {
		line, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		line = strings.TrimPrefix(line, " ")
		switch {
		case strings.HasPrefix(line, "- "):
			items = append(items, line)
		case len(items) > 0:
			items[len(items)-1] += "\n" + line
		default:
			free = append(free, line)
		}
	}
	return strings.Join(free, "\n"), items
}
