package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// arranger writes compact JSON, as json.Marshal makes it, in canonical form. Unlike recode it builds no tree, which
// takes most of the time of reading and writing small documents, and it does not check what it reads.
type arranger struct {
	in  []byte
	at  int
	out bytes.Buffer
}

// member is a member of an object that is being read: its key as it is written, without quotation marks, and where its
// value begins.
type member struct {
	key   []byte
	value int
}

// arrange returns the canonical form of what json.Marshal has made.
func arrange(compact []byte) ([]byte, error) {
	a := arranger{in: compact}
	a.out.Grow(2 * len(compact))
	if err := a.value(0); err != nil {
		return nil, err
	}
	a.out.WriteByte('\n')
	return a.out.Bytes(), nil
}

// value writes the value that begins here and moves behind it.
func (a *arranger) value(depth int) error {
	switch a.in[a.at] {
	case '{':
		return a.object(depth)
	case '[':
		return a.list(depth)
	case '"':
		text, err := a.text()
		a.out.Write(text)
		return err
	}
	begin := a.at
	a.skip()
	a.out.Write(a.in[begin:a.at]) // a number keeps its text
	return nil
}

func (a *arranger) object(depth int) error {
	a.at++
	var members []member
	for a.in[a.at] != '}' {
		if a.in[a.at] == ',' {
			a.at++
		}
		key, err := a.text()
		if err != nil {
			return err
		}
		a.at++ // the colon
		members = append(members, member{key, a.at})
		a.skip()
	}
	end := a.at + 1
	slices.Reverse(members) // of members with the same key, which only a json.RawMessage can have, the last one counts
	if err := sortByKey(members); err != nil {
		return err
	}
	members = slices.CompactFunc(members, func(x, y member) bool { return bytes.Equal(x.key, y.key) })
	a.out.WriteByte('{')
	for i, m := range members {
		a.line(i, depth+1)
		a.out.Write(m.key)
		a.out.WriteString(": ")
		a.at = m.value
		if err := a.value(depth + 1); err != nil {
			return err
		}
	}
	a.close('}', len(members), depth)
	a.at = end
	return nil
}

// sortByKey orders members by the texts that their keys mean.
func sortByKey(members []member) error {
	for _, m := range members {
		if bytes.IndexByte(m.key, '\\') < 0 {
			continue
		}
		// An escaped key does not sort as it is written. Keys are plain, so this need not be fast.
		means := make(map[string]string, len(members))
		for _, m := range members {
			var text string
			if err := json.Unmarshal(m.key, &text); err != nil {
				return err
			}
			means[string(m.key)] = text
		}
		slices.SortStableFunc(members, func(x, y member) int {
			return cmp.Compare(means[string(x.key)], means[string(y.key)])
		})
		return nil
	}
	slices.SortStableFunc(members, func(x, y member) int {
		return bytes.Compare(x.key[1:len(x.key)-1], y.key[1:len(y.key)-1])
	})
	return nil
}

func (a *arranger) list(depth int) error {
	a.at++
	a.out.WriteByte('[')
	n := 0
	for ; a.in[a.at] != ']'; n++ {
		if a.in[a.at] == ',' {
			a.at++
		}
		a.line(n, depth+1)
		if err := a.value(depth + 1); err != nil {
			return err
		}
	}
	a.at++
	a.close(']', n, depth)
	return nil
}

// line begins the line of the nth member or element.
func (a *arranger) line(n, depth int) {
	if n > 0 {
		a.out.WriteByte(',')
	}
	a.out.WriteByte('\n')
	for range depth {
		a.out.WriteString("  ")
	}
}

// close ends an object or a list of n members or elements.
func (a *arranger) close(with byte, n, depth int) {
	if n > 0 {
		a.out.WriteByte('\n')
		for range depth {
			a.out.WriteString("  ")
		}
	}
	a.out.WriteByte(with)
}

// text returns the text that begins here, in quotation marks and with as few escapes as Canonical writes.
func (a *arranger) text() ([]byte, error) {
	begin := a.at
	a.skip()
	written := a.in[begin:a.at]
	if bytes.IndexByte(written, '\\') < 0 {
		return written, nil
	}
	var means string
	if err := json.Unmarshal(written, &means); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(means); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// skip moves behind the value that begins here.
func (a *arranger) skip() {
	depth := 0
	for ; a.at < len(a.in); a.at++ {
		switch a.in[a.at] {
		case '"':
			for a.at++; a.in[a.at] != '"'; a.at++ {
				if a.in[a.at] == '\\' {
					a.at++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 { // of what surrounds a number
				return
			}
			depth--
		case ',':
			if depth == 0 {
				return
			}
			continue
		default:
			if depth == 0 { // in a number, true, false or null
				continue
			}
		}
		if depth == 0 {
			a.at++
			return
		}
	}
}
