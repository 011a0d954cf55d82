package zygote

import "github.com/ropewalk/ropewalk/sandbox"

// filesHeard collects the files that a cell hands over, of those that were asked for.
type filesHeard struct {
	wanted  []string
	content map[int][]byte
	total   int
}

// hear takes a piece of the file wanted[place]. Together they are bounded as those that a call may bring.
func (f *filesHeard) hear(place int, piece []byte) cause {
	if place < 0 || place >= len(f.wanted) {
		return causeForged
	}
	f.total += len(piece)
	if f.total > sandbox.MostInput {
		return causeFiles
	}
	if f.content == nil {
		f.content = map[int][]byte{}
	}
	f.content[place] = append(f.content[place], piece...)
	return causeNone
}

// list returns the files in the order in which they were asked for; one that is empty has no content.
func (f *filesHeard) list() (files []sandbox.File) {
	for i, name := range f.wanted {
		if content, there := f.content[i]; there {
			files = append(files, sandbox.File{Name: name, Content: content})
		}
	}
	return files
}
