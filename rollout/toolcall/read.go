package toolcall

import (
	"slices"
	"strings"
)

// Response is what a form reads from a response.
type Response struct {
	Reasoning string // the first reasoning
	Reasons   bool   // there is reasoning in tags, or the prompt has begun it
	Thinking  bool   // the reasoning has no end
	Content   string // what is outside of reasoning and calls
	Before    string // the content before the first call, and after its beginning
	After     string
	Calls     []Call
	Open      bool  // the response ends inside a call
	Begun     *Call // the open call, as far as its name and arguments are certain
}

// scan reads a response from left to right.
type scan struct {
	*Form
	text        string
	tools       []Tool
	ended       bool
	open, close string // tags of reasoning
	opened      int    // where the next tag of reasoning opens, and where the next one closes
	closing     int
	marks       []int // where each mark is next
	spoken      int   // where the last reasoning ended
	from, at    int   // where the current piece of content begins, and where the scan is
	closed      bool  // reasoning has ended that no tag has begun
	pieces      []string
	before      int // pieces before the first call
	out         Response
}

// Read reads a response without the token that ends it. thinking says that the prompt has begun the reasoning, and
// ended that the response ended itself and was not cut by a limit.
//
// Calls inside reasoning are drafts and no calls. The first closing tag of reasoning that nothing has begun makes
// reasoning of all that is before it. Tags of reasoning inside a call are its text.
func (f *Form) Read(text string, tools []Tool, thinking, ended bool) Response {
	if f.whole != nil {
		return f.whole(text, ended)
	}
	s := scan{Form: f, text: text, tools: tools, ended: ended, opened: -1, closing: -1,
		marks: slices.Repeat([]int{-1}, len(f.Marks))}
	s.open, s.close = f.ThinkTags()
	if thinking {
		s.think(0)
		s.closed = true
	}
	for s.next() {
	}
	s.take(len(text))
	s.finish()
	return s.out
}

// next steps over reasoning, calls or a mention. It returns false at the end of the text.
func (s *scan) next() bool {
	if s.opened < s.at {
		s.opened = index(s.text, s.open, s.at)
	}
	if s.closing < s.at && !s.closed {
		s.closing = index(s.text, s.close, s.at)
	} else if s.closed {
		s.closing = len(s.text)
	}
	opened, closing := s.opened, s.closing
	mark := s.mark(min(opened, closing))
	switch least := min(opened, closing, mark); {
	case least == len(s.text):
		return false
	case least == mark:
		s.call(mark, closing)
	case least == opened:
		s.take(opened)
		s.think(opened + len(s.open))
	default: // reasoning ends that nothing has begun
		if !s.out.Reasons {
			s.out.Reasoning, s.out.Reasons = s.text[s.spoken:closing], true
		}
		s.pieces, s.before, s.out.Calls, s.closed = nil, 0, nil, true
		s.at = closing + len(s.close)
		s.from, s.spoken = s.at, s.at
	}
	return s.at < len(s.text)
}

// think reads reasoning from a place to its end.
func (s *scan) think(from int) {
	end := index(s.text, s.close, from)
	if !s.out.Reasons {
		s.out.Reasoning, s.out.Reasons = s.text[from:end], true
	}
	s.out.Thinking = end == len(s.text)
	s.at = min(end+len(s.close), len(s.text))
	s.from, s.spoken = s.at, s.at
}

// mark returns where a call may begin before a limit.
func (s *scan) mark(limit int) int {
	first, rest := len(s.text), strings.TrimLeft(s.text[s.at:], spaces)
	start := len(s.text) - len(rest)
	if s.Bare != "" && strings.HasPrefix(rest, s.Bare) && start < limit && len(s.out.Calls) == 0 && s.blank() {
		first = start
	}
	for i, m := range s.Marks {
		if s.marks[i] < s.at {
			s.marks[i] = index(s.text, m, s.at)
		}
		if s.marks[i] < limit {
			first = min(first, s.marks[i])
		}
	}
	return first
}

// blank reports whether there is no content yet.
func (s *scan) blank() bool {
	spoken := func(text string) bool { return strings.TrimSpace(text) != "" }
	return !spoken(s.text[s.from:s.at]) && !slices.ContainsFunc(s.pieces, spoken)
}

// call reads what begins at a mark. closing is where reasoning may end that nothing has begun.
func (s *scan) call(mark, closing int) {
	got := s.read(s.text[mark:], s.tools, s.ended)
	broken := len(got.calls) > 0 && got.calls[len(got.calls)-1].Fault != ""
	switch {
	case (got.open || broken) && closing < mark+max(got.n, 1) || got.open && closing < len(s.text):
		s.at = closing // a mention in reasoning
	case got.open:
		s.take(mark)
		s.before = max(s.before, len(s.pieces))
		s.out.Calls, s.out.Open, s.out.Begun = append(s.out.Calls, got.calls...), true, got.begun
		s.from, s.at = len(s.text), len(s.text)
	case got.n == 0:
		s.at = mark + 1
	default:
		s.take(mark)
		if len(s.out.Calls) == 0 {
			s.before = len(s.pieces)
		}
		s.out.Calls = append(s.out.Calls, got.calls...)
		s.from, s.at = mark+got.n, mark+got.n
	}
}

// take ends a piece of content.
func (s *scan) take(to int) {
	s.pieces = append(s.pieces, s.text[s.from:to])
	s.from, s.at = to, to
}

// finish puts the content together. Next to calls the white space around it has no meaning.
func (s *scan) finish() {
	calls := len(s.out.Calls) > 0 || s.out.Open
	for i, piece := range s.pieces {
		for _, token := range s.Around {
			piece = strings.ReplaceAll(piece, token, "")
		}
		switch {
		case !calls:
			s.out.Content += piece
			continue
		case i < s.before:
			s.out.Before += piece
		default:
			s.out.After += piece
		}
		s.out.Content += strings.TrimSpace(piece)
	}
}

// index returns where a text has another one, from a place on; the end of the text if it has none.
func index(text, part string, from int) int {
	if from >= len(text) {
		return len(text)
	}
	if i := strings.Index(text[from:], part); i >= 0 {
		return from + i
	}
	return len(text)
}
