package searchqa

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// pageWidth is the number of columns of a page as a person reads it.
const pageWidth = 100

// lay lays the result of a tool out for a person: numbered results, each a title and its text, and a page under its
// title in lines of pageWidth columns. Other texts stay as they are.
func lay(tool, text string) string {
	switch tool {
	case searchTool, "wiki_search":
		return layResults(text)
	case browseTool:
		return layPage(text)
	}
	return text
}

// layResults numbers the results. A text without a title, such as that of an empty search, is no result.
func layResults(text string) string {
	lines := strings.Split(text, "\n")
	var b strings.Builder
	for i, line := range lines {
		title, snippet, ok := strings.Cut(line, ": ")
		if !ok {
			return text
		}
		if i > 0 {
			b.WriteString("\n")
		}
		number := strconv.Itoa(i+1) + ". "
		b.WriteString(number + title)
		for _, part := range wrap(snippet, pageWidth) {
			b.WriteString("\n" + strings.Repeat(" ", len(number)) + part)
		}
	}
	return b.String()
}

// layPage underlines the title and wraps the paragraphs. A text of one line is no page.
func layPage(text string) string {
	title, body, ok := strings.Cut(text, "\n")
	if !ok {
		return text
	}
	out := []string{title, strings.Repeat("─", min(utf8.RuneCountInString(title), pageWidth))}
	for paragraph := range strings.SplitSeq(body, "\n") {
		out = append(out, wrap(paragraph, pageWidth)...)
	}
	return strings.Join(out, "\n")
}

// wrap breaks a text into lines of at most so many characters, at spaces. A longer word has a line of its own. A text
// that fits stays as it is.
func wrap(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var out []string
	line, length := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if line != "" && length+1+n > width {
			out, line, length = append(out, line), "", 0
		}
		if line != "" {
			line, length = line+" ", length+1
		}
		line, length = line+word, length+n
	}
	return append(out, line)
}
