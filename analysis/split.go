package analysis

import (
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/schema"
)

// TokenText is a token of a turn as text; tokens that form one character together are one.
type TokenText struct {
	Text     string
	Written  bool // by the policy; else it is context
	From, To int  // the tokens, without To
}

// SplitTurn splits a turn's tokens, with its whole context as one text if that is asked for. ok is false where the
// tokenizer does not reproduce the recorded text; it is nil where the record has none.
func SplitTurn(tokens tokenizer.Codec, t schema.TurnRow, wholeContext bool) (out []TokenText, ok bool) {
	if tokens == nil || tokens.Check(t.TokenIDs) != nil {
		return nil, false
	}
	response := schema.Text(tokens.Decode(t.TokenIDs[t.ContextTokens:]))
	if !strings.HasPrefix(response, strings.TrimSpace(t.Response)) {
		return nil, false
	}
	open := "" // bytes of a character that is not complete
	for i, id := range t.TokenIDs {
		text, written, last := tokens.Decode([]int32{id}), i >= int(t.ContextTokens), len(out)-1
		if last >= 0 && out[last].Written == written && (open != "" || wholeContext && !written) {
			out[last].Text += text
			out[last].To++
		} else {
			out, open = append(out, TokenText{Text: text, Written: written, From: i, To: i + 1}), ""
		}
		if open += text; complete(open) {
			open = ""
		}
	}
	for i := range out {
		out[i].Text = schema.Text(out[i].Text)
	}
	return out, true
}

// complete reports whether text ends with a whole character.
func complete(text string) bool {
	for n := 1; n <= min(utf8.UTFMax, len(text)); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			return utf8.FullRuneInString(tail)
		}
	}
	return true
}
